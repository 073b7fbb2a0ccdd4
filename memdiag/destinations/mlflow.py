"""MLflow: metrics, tags, and the report as artifacts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from memdiag.destinations.destination import Destination
from memdiag.destinations.messages import PREFIX, End, Judgment, Row, Run, series
from memdiag.destinations.request import checked_directory, checked_url
from memdiag.destinations.step_axis import StepAxis
from memdiag.errors import UsageError
from memdiag.values.sanitize import printable

_BATCH = 1000  # the most metrics that MLflow takes at once
# Of a server that does not answer: MLflow would try for many minutes.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}


def checked(where: str, environ: Mapping[str, str]) -> str:
    """The URI of the store, "" for MLflow's default. Raises UsageError if it cannot be used."""
    uri = where or environ.get("MLFLOW_TRACKING_URI", "")
    parts = urlsplit(uri)
    if parts.scheme in {"http", "https"}:
        checked_url(uri, "--to mlflow")
    elif parts.scheme == "sqlite":
        checked_directory(str(Path(unquote(parts.path).removeprefix("/")).parent), "--to mlflow")
    elif parts.scheme in {"", "file"}:
        folder = checked_directory(unquote(parts.path) or ".", "--to mlflow")
        uri = Path(folder).as_uri() if uri else ""
    elif where and "://" not in where:
        raise UsageError(
            f"invalid value {printable(where)!r} for --to mlflow: not a tracking URI",
            remedy="write mlflow:sqlite:///mlflow.db or mlflow:http://HOST:5000",
        )
    return uri


class MLflow(Destination):
    """The run that the training names by MLFLOW_RUN_ID, or a run of memdiag."""

    def __init__(self, where: str, environ: Mapping[str, str]) -> None:
        """where: the URI of the store, "" for MLflow's default."""
        os.environ.update(environ)
        for name, value in _PATIENCE.items():
            os.environ.setdefault(name, value)
        self._uri = where or None
        self._axis = StepAxis()
        self._joined = environ.get("MLFLOW_RUN_ID", "")
        self._last_step = 0

    def start(self, run: Run, say: Callable[[str], None]) -> None:
        import mlflow

        if self._uri is not None:
            mlflow.set_tracking_uri(self._uri)
        self._client: Any = mlflow.MlflowClient()
        self._started_s = run.started_s
        if self._joined:
            found = self._client.get_run(self._joined)
        else:
            found = self._client.create_run(
                self._experiment(),
                run_name=run.name,
                start_time=int(run.started_s * 1000),
                tags={"mlflow.source.name": run.program, f"{PREFIX}.version": run.memdiag},
            )
        self._id = found.info.run_id
        say(f"run {self._id} in {mlflow.get_tracking_uri()}")

    def _experiment(self) -> str:
        """The experiment of the environment, or the default one."""
        if found := os.environ.get("MLFLOW_EXPERIMENT_ID"):
            return found
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "Default"
        known = self._client.get_experiment_by_name(name)
        return str(self._client.create_experiment(name) if known is None else known.experiment_id)

    def rows(self, rows: Sequence[Row]) -> None:
        self._add(self._axis.placed(rows))

    def judge(self, judgment: Judgment) -> None:
        for name, text in judgment.texts().items():
            self._client.set_tag(self._id, f"{PREFIX}.{name}", text)

    def finish(self, end: End | None) -> None:
        self._add(self._axis.placed((), is_last=True))
        if end is not None:
            self.judge(end.judgment)
            for name, value in end.judgment.numbers().items():
                tag = f"{PREFIX}.{name.replace('/', '.')}"
                self._client.set_tag(self._id, tag, f"{value:.9g}")
            for path in end.files.values():
                self._client.log_artifact(self._id, path, PREFIX)
        if not self._joined:  # the training ends its own run
            self._client.set_terminated(self._id)

    def _add(self, placed: Iterable[tuple[int, Row]]) -> None:
        from mlflow.entities import Metric

        metrics = [
            Metric(name, value, int((self._started_s + row.at_s) * 1000), step)
            for step, row in placed
            for name, value in series(row)
        ]
        for first in range(0, len(metrics), _BATCH):
            self._client.log_batch(self._id, metrics=metrics[first : first + _BATCH])


make = MLflow
