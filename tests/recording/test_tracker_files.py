"""Runs in the files of trackers: MLflow's database, an offline run of W&B."""

from __future__ import annotations

import io
import json
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

from memdiag.errors import ReadError
from memdiag.recording.read import expand, read
from memdiag.recording.trackers import mlflow_database

STEPS = 300
# The columns that are read, as MLflow 3 makes them.
SCHEMA = """
CREATE TABLE runs (run_uuid VARCHAR(32), name VARCHAR(250), start_time BIGINT,
                   lifecycle_stage VARCHAR(20));
CREATE TABLE metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT, run_uuid VARCHAR(32),
                      step BIGINT, is_nan BOOLEAN);
"""
# A view that never ends.
ENDLESS = """
CREATE TABLE runs (run_uuid, name, start_time, lifecycle_stage);
INSERT INTO runs VALUES ('1', 'a', 1, 'active');
CREATE VIEW metrics AS WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n)
  SELECT i AS run_uuid, 'a' AS key, 1 AS timestamp, 1 AS step, 1 AS value, 0 AS is_nan FROM n;
"""


def database(path: Path, rows: dict[str, list[tuple[str, float, int, int]]]) -> Path:
    """The runs with rows of metric, value, milliseconds and step, in order of their start."""
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(SCHEMA)
        for started, (run, metrics) in enumerate(rows.items()):
            made.execute(
                "INSERT INTO runs VALUES (?, ?, ?, 'active')", (run, f"name-{run}", started)
            )
            made.executemany(
                "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, 0)",
                [(key, value, at, run, step) for key, value, at, step in metrics],
            )
    return path


def sent() -> list[tuple[str, float, int, int]]:
    """What `--to mlflow` sends: before the first step, and then at each."""
    rows = [("memdiag/rss_bytes", 1e9, 1_700_000_000_000, 0)]
    for step in range(STEPS):
        at_ms = 1_700_000_001_000 + 500 * step
        rows += [
            ("memdiag/step", step, at_ms, step),
            ("memdiag/rss_bytes", 1e9 + 2e6 * step, at_ms, step),
            ("memdiag/rank0/vram_allocated_bytes", 5e8, at_ms, step),
            ("loss", 1 / (step + 1), at_ms, step),
        ]
    return rows


def test_what_was_sent_to_mlflow_is_a_recording_again(tmp_path: Path) -> None:
    found = read(str(database(tmp_path / "mlflow.db", {"a": sent()})))
    series = {(one.process, one.metric): one for one in found.series}
    assert set(series) == {("tree", "rss_bytes"), ("rank0", "vram_allocated_bytes")}
    memory = series["tree", "rss_bytes"]
    assert memory.axis.name == "step"
    assert memory.x[-1] == STEPS - 1
    assert memory.y[-1] == 1e9 + 2e6 * (STEPS - 1)
    assert memory.at_s is not None
    assert memory.at_s[-1] == pytest.approx(1 + 0.5 * (STEPS - 1))
    assert "read as mlflow-database: what memdiag has sent there" in found.notes


def test_the_newest_run_of_a_database_is_read(tmp_path: Path) -> None:
    old = [("rss_mb", 100.0 + step, 1_700_000_000_000 + step, step) for step in range(50)]
    new = [("rss_mb", 500.0, 1_700_000_900_000 + step, step) for step in range(50)]
    found = read(str(database(tmp_path / "x.db", {"old": old, "new": new, "empty": []})))
    (series,) = found.series
    assert series.y[0] == 500e6
    assert any("the newest of 2 runs: name-new" in note for note in found.notes)


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE t (a)",
        "CREATE TABLE runs (x); CREATE TABLE metrics (y)",
        ENDLESS,
    ],
)
def test_another_database_is_an_error(
    tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow_database, "_MOST_S", 0.2)
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(script)
    with pytest.raises(ReadError, match=r"SQLite database, but not one of MLflow|has metrics"):
        read(str(path))


def test_a_damaged_database_is_an_error(tmp_path: Path) -> None:
    path = database(tmp_path / "mlflow.db", {"a": sent()})
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(ReadError, match="not one of MLflow"):
        read(str(path))


# -- W&B -----------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def history(row: dict[str, object]) -> bytes:
    items = (
        field(1, field(2, key.encode()) + field(16, json.dumps(value).encode()))
        for key, value in row.items()
    )
    return field(2, b"".join(items))


def log(records: list[bytes]) -> bytes:
    """A LevelDB log: blocks of 32 KiB."""
    out = io.BytesIO()
    out.write(b":W&B\xe1\xbe\x00")
    for record in records:
        left, is_first = record, True
        while left or is_first:
            room = 32768 - out.tell() % 32768
            if room < 7:
                out.write(b"\0" * room)
                continue
            piece, left = left[: room - 7], left[room - 7 :]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}
            out.write(struct.pack("<IHB", 0, len(piece), kind[is_first, not left]) + piece)
            is_first = False
    return out.getvalue()


def sent_to_wandb() -> list[bytes]:
    rows: list[dict[str, object]] = [
        {
            "memdiag/at_s": 0.5 * step,
            "memdiag/step": step,
            "memdiag/rss_bytes": 1e9 + 2e6 * step,
            "memdiag/rank0/tensors": 12,
            "note": "x" * 900,
            "_step": step,
            "_timestamp": 1.7e9 + step,
        }
        for step in range(STEPS)
    ]
    return [field(17, b"run"), *map(history, rows), field(18, b"")]


def test_what_was_sent_to_wandb_is_a_recording_again(tmp_path: Path) -> None:
    (tmp_path / "offline-run-1").mkdir()
    path = tmp_path / "offline-run-1" / "run-abc.wandb"
    path.write_bytes(log(sent_to_wandb()))
    assert path.stat().st_size > 4 * 32768
    assert expand([str(tmp_path)]) == [str(path)]
    series = {(one.process, one.metric): one for one in read(str(path)).series}
    assert set(series) == {("tree", "rss_bytes"), ("rank0", "tensors")}
    memory = series["tree", "rss_bytes"]
    assert len(memory.y) == STEPS
    assert memory.y[-1] == 1e9 + 2e6 * (STEPS - 1)
    assert memory.x[-1] == STEPS - 1


def test_history_of_others_is_read_by_its_names(tmp_path: Path) -> None:
    path = tmp_path / "run-abc.wandb"
    rows: list[dict[str, object]] = [
        {"memory/rss_mb": 500 + step, "_step": step, "loss": None} for step in range(40)
    ]
    path.write_bytes(log([history(row) for row in rows]))
    (series,) = read(str(path)).series
    assert series.axis.name == "_step"
    assert series.y[-1] == 539e6


@pytest.mark.parametrize("left", [0.2, 0.5, 0.999])
def test_a_torn_run_is_read_up_to_there(tmp_path: Path, left: float) -> None:
    path = tmp_path / "run-abc.wandb"
    whole = log(sent_to_wandb())
    path.write_bytes(whole[: int(left * len(whole))])
    memory = next(one for one in read(str(path)).series if one.metric == "rss_bytes")
    assert len(memory.y) == pytest.approx(left * STEPS, abs=3)


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, b"\xff" * 5000, log([b"\xff" * 99])])
def test_a_run_without_history_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run-abc.wandb"
    path.write_bytes(b":W&B\xe1\xbe\x00" + content)
    with pytest.raises(ReadError, match="no history"):
        read(str(path))


def test_series_with_the_names_of_keys_are_no_readings(tmp_path: Path) -> None:
    path = tmp_path / "run-abc.wandb"
    row: dict[str, object] = {"memdiag/rss_bytes": 5e8, "memdiag/step": 1, "memdiag/at_s": 1.0}
    odd = {f"memdiag/rank0/{key}": 7 for key in ("at_s", "step", "phase", "pid", "process")}
    path.write_bytes(log([history({**row, **odd, "memdiag/pid": 3})] * 40))
    assert {(one.process, one.metric) for one in read(str(path)).series} == {("tree", "rss_bytes")}
