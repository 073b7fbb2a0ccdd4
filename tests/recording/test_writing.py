"""The recording while it grows: whatever happens, what was written can be read."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from memdiag.errors import OutputExists, ReadError, UsageError
from memdiag.recording.native.atomic_file import RecordingFiles
from memdiag.recording.native.sidecar import read_sidecar, sidecar_path
from memdiag.recording.native.writer import Writer
from memdiag.recording.read import read
from memdiag.values.measurements import AxisKind, Ending, Limit, Missing, Role, Sample, Unavailable

TREE = "tree"


def _sample(at_s: float, rss: int, **more: object) -> Sample:
    values = {"pid": 7, "process": "main", "readings": {"rss_bytes": rss}, **more}
    return Sample(at_s=at_s, **values)  # type: ignore[arg-type]


def _writer(path: Path, **options: object) -> Writer:
    force = bool(options.pop("force", False))
    files = RecordingFiles(path, force=force)
    return Writer(files, about={"command": ["train"]}, interval_s=0.1, **options)  # type: ignore[arg-type]


def _cells(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "run.csv")
    for n in range(20):
        readings = {"rss_bytes": 10**9 + n, "tensors": 70 + n, "copies": n / 2}
        writer.add([_sample(n / 10, 0, readings=readings, step=n // 2, phase="a/b")])
    writer.close(
        ending=Ending(code=1),
        missing=[Missing(metric="vram_bytes", process="main", why=Unavailable(reason="no GPU"))],
        limits=[Limit(name="host RAM", value_bytes=5, roles=frozenset({Role.RESIDENT}))],
        notes=["hello"],
        cost={"cpu_s": 1.5},
    )
    recording = read(str(tmp_path / "run.csv"))
    series = {s.metric: s for s in recording.series}
    assert set(series) == {"rss_bytes", "tensors", "copies"}
    assert series["rss_bytes"].y.tolist() == [10**9 + n for n in range(20)]
    assert series["copies"].role is Role.COUNTER
    assert series["copies"].y.tolist() == [n / 2 for n in range(20)]
    assert series["rss_bytes"].axis.kind is AxisKind.STEP
    assert series["rss_bytes"].phases is not None
    assert series["rss_bytes"].phases.names == ("a/b",)
    assert series["rss_bytes"].at_s is not None
    assert recording.ending == Ending(code=1)
    assert recording.missing[0].why.reason == "no GPU"
    assert recording.limits[0].roles == {Role.RESIDENT}
    assert recording.notes == ("hello",)
    assert recording.about["command"] == ["train"]
    assert recording.about["cost"] == {"cpu_s": 1.5}


def test_any_csv_reader_understands_it(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "run.csv")
    writer.add([_sample(0.0, 5, phase='say "hi", twice\nor so', process="a, b")])
    writer.add([_sample(0.1, 6, readings={})])
    writer.close()
    rows = _cells(tmp_path / "run.csv")
    assert [row["rss_bytes"] for row in rows] == ["5", ""]
    assert rows[0]["process"] == "a, b"
    assert rows[0]["phase"] == 'say "hi", twice\\nor so'
    assert rows[0]["step"] == ""


def test_time_is_the_axis_without_steps_and_processes_are_apart(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "run.csv")
    for n in range(10):
        writer.add([_sample(n, 5), _sample(n, 6, pid=8, process="worker 8")])
        writer.add([_sample(n, 11, process=TREE)])
    writer.close()
    recording = read(str(tmp_path / "run.csv"))
    assert [s.process for s in recording.series] == ["main", "worker 8", TREE]
    assert {s.axis.kind for s in recording.series} == {AxisKind.SECONDS}
    assert all(len(s.y) == 10 for s in recording.series)


def test_samples_before_the_first_step_have_no_position(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "run.csv")
    writer.add([_sample(n, 5, step=None if n < 3 else n) for n in range(20)])
    writer.close()
    series = read(str(tmp_path / "run.csv")).series[0]
    assert np.isnan(series.x[:3]).all()
    assert series.x[3:].tolist() == list(range(3, 20))


def test_a_metric_that_appears_late_widens_the_table(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "run.csv")
    writer.add([_sample(0.0, 5)])
    writer.flush()
    writer.add([_sample(0.1, 6, readings={"rss_bytes": 6, "late": 3, "later": 4.5})])
    writer.flush()
    writer.add([_sample(0.2, 7)])
    writer.close()
    rows = _cells(tmp_path / "run.csv")
    assert [row["rss_bytes"] for row in rows] == ["5", "6", "7"]
    assert [row["late"] for row in rows] == ["", "3", ""]
    assert [row["later"] for row in rows] == ["", "4.5", ""]
    assert all(None not in row for row in rows)


def test_counters_cannot_collide_with_columns_or_grow_without_end(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "run.csv")
    readings = {"rss_bytes": 1, "step": 2, "a\x1b": 3, "a\\x1b": 4}
    readings |= {f"counter {n}": n for n in range(1000)}
    writer.add([_sample(0.0, 0, readings=readings), _sample(0.1, 1)])
    writer.close()
    with (tmp_path / "run.csv").open(newline="") as file:
        header = next(csv.reader(file))
    assert len(header) == len(set(header)) <= 256
    assert any("too many columns" in note for note in read(str(tmp_path / "run.csv")).notes)


def test_existing_files_are_not_overwritten_without_force(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("mine")
    with pytest.raises(OutputExists):
        _writer(path)
    assert path.read_text() == "mine"
    other = tmp_path / "other.csv"
    sidecar_path(other).write_text("mine")
    with pytest.raises(OutputExists):
        _writer(other)
    writer = _writer(path, force=True)
    writer.add([_sample(0.0, 5)])
    writer.close()
    assert len(_cells(path)) == 1


def test_places_that_cannot_be_written_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        _writer(tmp_path / "nowhere" / "run.csv")
    with pytest.raises(UsageError):
        _writer(Path(os.devnull), force=True)


def test_parquet_holds_what_the_csv_held(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "run.parquet")
    writer.add([_sample(n / 10, 10**9 + n, step=n) for n in range(50)])
    writer.flush()
    assert writer.path == tmp_path / "run.csv"
    assert len(_cells(writer.path)) == 50
    writer.close(ending=Ending(signal=9))
    assert writer.path == tmp_path / "run.parquet"
    assert not (tmp_path / "run.csv").exists()
    recording = read(str(writer.path))
    assert recording.series[0].y.tolist() == [10**9 + n for n in range(50)]
    assert recording.series[0].x.tolist() == list(range(50))
    assert recording.ending == Ending(signal=9)


def test_sidecar_is_there_from_the_start(tmp_path: Path) -> None:
    _writer(tmp_path / "run.csv").add([])
    sidecar = read_sidecar(tmp_path / "run.meta.json")
    assert sidecar is not None
    assert not sidecar.complete
    assert sidecar.about["interval_s"] == 0.1


def test_sidecar_of_version_1_and_roles_of_a_newer_memdiag_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.meta.json"
    limit = {"name": "host RAM", "value_bytes": 5, "roles": ["resident", "unheard of"]}
    missing = {"metric": "vram_bytes", "process": "main", "reason": "no \x1bGPU", "remedy": ""}
    values = {"memdiag_recording": 1, "ending": None, "limits": [limit], "missing": [missing]}
    path.write_text(json.dumps(values))
    sidecar = read_sidecar(path)
    assert sidecar is not None
    assert sidecar.limits[0].roles == {Role.RESIDENT}
    assert sidecar.missing[0].why == Unavailable(reason="no \\x1bGPU")


def test_damaged_sidecar_does_not_hinder_reading(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "run.csv")
    writer.add([_sample(n, 5) for n in range(5)])
    writer.close()
    for damage in (b"", b"{", b"[1]", b'{"missing": 5}', b"\xff", b'{"ending": {"code": "x"}}'):
        (tmp_path / "run.meta.json").write_bytes(damage)
        assert len(read(str(tmp_path / "run.csv")).series) == 1


_ENDLESS = """
import sys, time
from pathlib import Path
from memdiag.values.measurements import Sample
from memdiag.recording.native.atomic_file import RecordingFiles
from memdiag.recording.native.writer import Writer
writer = Writer(RecordingFiles(Path(sys.argv[1]), force=False), about={}, interval_s=0.1)
for n in range(10**9):
    readings = {"rss_bytes": n}
    writer.add([Sample(at_s=n / 10, pid=7, process="main", readings=readings, phase="p")])
    if n % 10 == 9:
        writer.flush()
        print(n, flush=True)
"""


def test_everything_flushed_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    with subprocess.Popen([sys.executable, "-c", _ENDLESS, str(path)], stdout=-1, text=True) as p:
        assert p.stdout is not None
        while int(p.stdout.readline()) < 2000:
            pass
        p.kill()
        told = [int(line) for line in p.stdout]
    recording = read(str(path))
    y = recording.series[0].y
    assert y.tolist() == list(range(len(y)))
    assert len(y) > (told[-1] if told else 2000)
    assert any("stopped before" in note for note in recording.notes)


def test_torn_last_line_of_a_recording_is_left_out(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "run.csv")
    writer.add([_sample(n, 1000 + n) for n in range(5)])
    writer.close()
    whole = (tmp_path / "run.csv").read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for cut in range(last + 1, len(whole)):
        (tmp_path / "run.csv").write_bytes(whole[:cut])
        recording = read(str(tmp_path / "run.csv"))
        assert recording.series[0].y.tolist() == [1000, 1001, 1002, 1003]
        assert any("torn" in note for note in recording.notes)


def test_recording_without_rows_is_an_error_of_its_own(tmp_path: Path) -> None:
    _writer(tmp_path / "run.csv").close()
    with pytest.raises(ReadError, match="no samples"):
        read(str(tmp_path / "run.csv"))


_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from memdiag.values.measurements import Sample
from memdiag.recording.native.atomic_file import RecordingFiles
from memdiag.recording.native.writer import Writer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = Writer(RecordingFiles(Path(sys.argv[1]), force=False), about={}, interval_s=0.1)
def take(n):
    readings = {"rss_bytes": n, **({"late": 1} if n > 1000 else {})}
    writer.add([Sample(at_s=n / 10, pid=7, process="main", readings=readings)])
    writer.flush()
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
for n in range(2000):
    take(n)
assert "large" in writer.trouble, writer.trouble
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for n in range(2000, 2100):
    take(n)
writer.close()
"""


@pytest.mark.parametrize("limit", [0, 100, 3001, 20000])
def test_full_disk_keeps_what_is_there_and_goes_on_when_there_is_room(
    tmp_path: Path, limit: int
) -> None:
    path = tmp_path / "run.csv"
    subprocess.run([sys.executable, "-c", _FULL_DISK, str(path), str(limit)], check=True)
    rows = _cells(path)
    values = [int(row["rss_bytes"]) for row in rows]
    assert values == sorted(set(values))
    assert values[-1] == 2099
    assert all(None not in row and None not in row.values() for row in rows)
    assert any("gaps" in note for note in read(str(path)).notes)


def test_target_outlives_nothing_of_ours(tmp_path: Path) -> None:
    """The writer's thread does not keep a program alive that forgot to close."""
    code = _ENDLESS.replace("10**9", "20")
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run.csv")], check=True, stdout=-3)
    assert time.monotonic() - began < 30


def test_recording_without_its_sidecar_says_what_is_not_known(tmp_path: Path) -> None:
    writer = _writer(tmp_path / "run.csv")
    writer.add([_sample(n, 5) for n in range(5)])
    writer.close()
    (tmp_path / "run.meta.json").unlink()
    assert any("run.meta.json is not beside it" in n for n in read(str(tmp_path / "run.csv")).notes)
