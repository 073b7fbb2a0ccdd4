"""MLflow's store in SQLite (`mlflow.db`): the metrics of the newest run in it."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from memdiag.errors import ReadError
from memdiag.recording.inputs.source import STDIN, Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.table import Table
from memdiag.recording.trackers.sent_series import is_sent
from memdiag.safe_open import open_regular
from memdiag.values.sanitize import printable

_MOST_ROWS, _MOST_NAMES = 20_000_000, 20_000
# A database may hold views that never end.
_MOST_S, _LOOK_EVERY = 60.0, 100_000
_NAMES = "SELECT DISTINCT key FROM metrics WHERE run_uuid = ? LIMIT ?"
_RUNS = (
    "SELECT run_uuid, name FROM runs WHERE lifecycle_stage = 'active' AND EXISTS "
    "(SELECT 1 FROM metrics WHERE metrics.run_uuid = runs.run_uuid) ORDER BY start_time DESC"
)
_ROWS = (
    "SELECT key, timestamp, step, CASE is_nan WHEN 1 THEN NULL ELSE value END FROM metrics "
    "WHERE run_uuid = ? ORDER BY timestamp, step LIMIT ?"
)


def read_database(source: Source) -> Table:
    """The metrics of the newest run. Raises ReadError if it is another database."""
    if source.name == STDIN:
        raise ReadError("a database is not read from standard input", remedy="name the file")
    fd = open_regular(source.path or Path(source.name))
    try:
        # By its descriptor, and without the files that SQLite would look for beside it.
        uri = f"file:/proc/self/fd/{fd}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            until_s = time.monotonic() + _MOST_S
            database.set_progress_handler(lambda: time.monotonic() > until_s, _LOOK_EVERY)
            database.text_factory = lambda text: text.decode(errors="replace")
            database.execute("PRAGMA trusted_schema = OFF")
            return _newest(database, source.name)
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:  # damaged text or numbers
        raise ReadError(
            f"it is an SQLite database, but not one of MLflow ({printable(str(error))})",
            source=source.name,
            remedy="export a table of it as CSV",
        ) from error
    finally:
        os.close(fd)


def _newest(database: sqlite3.Connection, source: str) -> Table:
    runs = database.execute(_RUNS).fetchmany(_MOST_NAMES)
    if not runs:
        raise ReadError("no run in this database has metrics", source=source)
    run, name = map(str, runs[0])
    names = [str(key) for (key,) in database.execute(_NAMES, (run, _MOST_NAMES))]
    kept = {one for one in names if is_sent(one) or recognise(one).part is Part.METRIC}
    kept = kept or set(names)
    rows = [row for row in database.execute(_ROWS, (run, _MOST_ROWS)) if row[0] in kept]
    tall = pl.DataFrame(
        rows,
        schema={
            "metric": pl.String,
            "timestamp": pl.Int64,
            "step": pl.Int64,
            "value": pl.Float64,
        },
        orient="row",
        strict=False,
    ).unique(["timestamp", "step", "metric"], keep="last", maintain_order=True)
    wide = tall.pivot("metric", index=["timestamp", "step"], values="value")
    note = f"the newest of {len(runs)} runs: {printable(name or run)}"
    return Table.of(wide, notes=(note,) if len(runs) > 1 else ())
