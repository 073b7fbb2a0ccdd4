"""TensorBoard: scalars, the verdict as text and the picture, in an event file of its own."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from memdiag import safe_open
from memdiag.destinations.destination import Destination
from memdiag.destinations.messages import PREFIX, End, Judgment, Row, Run, series
from memdiag.destinations.request import checked_directory
from memdiag.destinations.step_axis import StepAxis

_DEFAULT = "runs"  # as torch's SummaryWriter


def checked(where: str, environ: Mapping[str, str]) -> str:
    """The directory of logs in full. Raises UsageError."""
    return checked_directory(where or _DEFAULT, "--to tensorboard")


class TensorBoard(Destination):
    """A run of TensorBoard: a directory with an event file, the report and its picture."""

    def __init__(self, where: str, environ: Mapping[str, str]) -> None:
        """where: the directory of logs."""
        self._where = Path(where)
        self._axis = StepAxis()
        self._last_step = 0

    def start(self, run: Run, say: Callable[[str], None]) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        # Not TensorBoard's own writer: it would import TensorFlow if that is installed.
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._started_s = run.started_s
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(run.started_s))
        self._directory = self._where / f"{PREFIX}-{stamp}-{run.name}"
        self._directory.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(run.started_s):010d}.{run.host}.{run.pid}.0"
        fd = safe_open.create(self._directory / name)
        self._file: BinaryIO = os.fdopen(fd, "wb")
        self._writer = RecordWriter(self._file)
        self._write(event_pb2.Event(wall_time=run.started_s, file_version="brain.Event:2"))
        say(f"{self._directory}")

    def rows(self, rows: Sequence[Row]) -> None:
        self._add(self._axis.placed(rows))

    def judge(self, judgment: Judgment) -> None:
        """Only the last one is kept: text cannot change."""

    def finish(self, end: End | None) -> None:
        self._add(self._axis.placed((), is_last=True))
        if end is not None:
            self._summarize(end)
        self._file.close()

    def _add(self, placed: Any) -> None:
        for step, row in placed:
            self._last_step = step
            values = [self._summary.Value(tag=tag, simple_value=v) for tag, v in series(row)]
            self._log(values, at_s=self._started_s + row.at_s)
        self._file.flush()

    def _log(self, values: Sequence[Any], *, at_s: float) -> None:
        summary = self._summary(value=values)
        self._write(self._event(wall_time=at_s, step=self._last_step, summary=summary))

    def _write(self, event: Any) -> None:
        self._writer.write(event.SerializeToString())

    def _summarize(self, end: End) -> None:
        """The verdict as a table, its numbers as scalars, the files beside the events."""
        judgment = end.judgment
        rows = [f"| {name} | {text} |" for name, text in judgment.texts().items()]
        rows += [f"| {name} | {value:.6g} |" for name, value in judgment.numbers().items()]
        table = "\n".join(["| | |", "|---|---|", *rows])
        place = f"{PREFIX}/verdict"
        values = [self._text(f"{place}/text", table)]
        values += [
            self._summary.Value(tag=f"{place}/{name}", simple_value=value)
            for name, value in judgment.numbers().items()
        ]
        for name, path in end.files.items():
            content = Path(path).read_bytes()
            with safe_open.closing(safe_open.create(self._directory / name)) as fd:
                safe_open.write_all(fd, content)
            if name.endswith(".png"):
                values.append(self._image(f"{PREFIX}/picture", content))
        self._log(values, at_s=time.time())

    def _text(self, tag: str, text: str) -> Any:
        from tensorboard.compat.proto import tensor_pb2, types_pb2
        from tensorboard.plugins.text.metadata import create_summary_metadata

        tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, string_val=[text.encode()])
        about = create_summary_metadata(display_name=None, description=None)
        return self._summary.Value(tag=tag, tensor=tensor, metadata=about)

    def _image(self, tag: str, png: bytes) -> Any:
        width, height = struct.unpack(">II", png[16:24])  # the header of a PNG
        image = self._summary.Image(
            encoded_image_string=png, width=width, height=height, colorspace=4
        )
        return self._summary.Value(tag=tag, image=image)


make = TensorBoard
