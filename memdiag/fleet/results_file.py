"""The file of results: one row per recording and series, in SQLite, Parquet or DuckDB.

Results are written to a SQLite database as they arrive. For Parquet and DuckDB it is beside the
file while a command runs (`out.parquet.partial`), filled from the file at the start and written to
it at the end. A command that is killed leaves it, and the next one continues with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from memdiag import safe_open
from memdiag.errors import CannotMeasure, OutputExists, UsageError
from memdiag.fleet.judge_file import Task
from memdiag.values.fleet import RecordingResult, SeriesResult
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict

_APPLICATION, _VERSION = 0x6D656D64, 1  # "memd"
_ROWS = 20_000
_COMMIT_EVERY = 500
_SQLITE = (".sqlite", ".sqlite3", ".db")
_BESIDE = ("-journal", "-wal", "-shm")  # what SQLite makes
_PARQUET, _DUCKDB = ".parquet", ".duckdb"
_RECORDING = {
    "path": "TEXT PRIMARY KEY",
    "verdict": "TEXT",
    "confidence": "REAL",
    "why": "TEXT",
    "error": "TEXT",
    "labels": "TEXT",
    "started_at": "TEXT",
    "key": "TEXT",
    "tag": "TEXT",
    "how": "TEXT",
    "cpu_s": "REAL",
    "first_at": "TEXT",
    "judged_at": "TEXT",
    "asked_at": "TEXT",
    "previous_verdict": "TEXT",
}
_TYPES = {"float": "REAL", "int": "INTEGER", "bool": "INTEGER", "str": "TEXT", "Verdict": "TEXT"}
_SERIES = {
    "number": "INTEGER",
    **{
        f.name: _TYPES.get(str(f.type).removesuffix(" | None"), "BLOB")
        for f in fields(SeriesResult)
    },
}
# In the view, what a recording and its series have in common by name is the recording's.
_OF_SERIES = [f"s.{n} AS series_{n}" if n in {*_RECORDING, "number"} else f"s.{n}" for n in _SERIES]
_OF_BOTH = [f"r.{name}" for name in _RECORDING] + _OF_SERIES
_NAMES = [one.rpartition(" ")[2].rpartition(".")[2] for one in _OF_BOTH]
_SCHEMA = f"""
CREATE TABLE recordings ({", ".join(f"{n} {t}" for n, t in _RECORDING.items())}) WITHOUT ROWID;
CREATE TABLE series (path TEXT, {", ".join(f"{n} {t}" for n, t in _SERIES.items())},
    PRIMARY KEY (path, number)) WITHOUT ROWID;
CREATE VIEW results AS SELECT {", ".join(_OF_BOTH)}
    FROM recordings r LEFT JOIN series s ON s.path = r.path;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
"""


class ResultsFile:
    """Results of recordings. One command at a time may use a file.

    began_at: ISO time at which this use began; results that it adds or looks at have it.
    """

    def __init__(self, path: Path | None) -> None:
        """Open or create it; None for a temporary one.

        Raises UsageError for a name without a known ending, OutputExists for a file that memdiag
        did not write, and CannotMeasure if another command uses it or it cannot be written.
        """
        self._stack = contextlib.ExitStack()
        self.path = path
        self.began_at = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        self._pending = 0
        with self._closed_on_error():
            self._open(path)
            self.is_new = self._one("SELECT count(*) FROM recordings") == 0

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with self._closed_on_error():
            if error is None:
                self.close()
                return
            with contextlib.suppress(sqlite3.Error):
                self.close(complete=False)
            if isinstance(error, sqlite3.Error):
                raise error

    @contextlib.contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        """What SQLite cannot read or write (a full disk) is CannotMeasure."""
        try:
            yield
        except sqlite3.Error as error:
            self._stack.close()
            shown = printable(str(self.path or "the file of results"))
            raise CannotMeasure(f"{shown} cannot be used: {error}") from error
        except BaseException:
            self._stack.close()
            raise

    def close(self, *, complete: bool = True) -> None:
        """Close it. complete: also write Parquet or DuckDB; else the next command continues."""
        with self._stack:
            self.database.commit()
            if complete and self.path is not None and self._working != self.path:
                self._export(self.path)
                self.database.close()
                safe_open.remove(self._working.name, dir_fd=self._directory)

    def known(self, paths: Sequence[str], how: str) -> list[Task]:
        """A task for each path, with the tag and key of its result. how: `How.digest`."""
        marks = ",".join("?" * len(paths))
        rows = self.database.execute(
            f"SELECT path, tag, key FROM recordings WHERE how = ? AND path IN ({marks})",
            (how, *paths),
        )
        found = {path: (tag, key) for path, tag, key in rows}
        tasks = []
        for path in paths:
            tag, key = found.get(path, ("", ""))
            tasks.append(Task(path=path, tag=tag or "", key=key or ""))
        return tasks

    def add(self, result: RecordingResult, how: str) -> None:
        """Add a result, or note that the known one is that of the content still."""
        if result.is_unchanged:
            self.database.execute(
                "UPDATE recordings SET asked_at = ?, tag = ? WHERE path = ?",
                (self.began_at, result.tag, result.path),
            )
        else:
            self._replace(result, how)
        self._pending += 1
        if self._pending >= _COMMIT_EVERY:
            self.database.commit()
            self._pending = 0

    def _replace(self, result: RecordingResult, how: str) -> None:
        before = self.database.execute(
            "SELECT first_at, coalesce(verdict, 'error') FROM recordings WHERE path = ?",
            (result.path,),
        ).fetchone()
        first_at, previous = before or (self.began_at, None)
        values = (
            result.path,
            result.verdict.value if result.verdict else None,
            result.confidence,
            result.why,
            result.error,
            json.dumps(dict(result.labels)),
            result.started_at,
            result.key,
            result.tag,
            how,
            result.cpu_s,
            first_at,
            self.began_at,
            self.began_at,
            previous,
        )
        self._insert("recordings", [values])
        self.database.execute("DELETE FROM series WHERE path = ?", (result.path,))
        rows = [(result.path, number, *_row(one)) for number, one in enumerate(result.series)]
        self._insert("series", rows)

    def _insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            marks = ",".join("?" * len(rows[0]))
            self.database.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)

    def _one(self, query: str, *values: Any) -> Any:
        return self.database.execute(query, values).fetchone()[0]

    def _open(self, path: Path | None) -> None:
        if path is None:
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="memdiag-"))
            self._working = Path(folder) / "results.sqlite"
        elif path.suffix in _SQLITE:
            self._working = path
        elif path.suffix in {_PARQUET, _DUCKDB}:
            self._working = path.with_name(path.name + ".partial")
        else:
            endings = ", ".join((*_SQLITE, _PARQUET, _DUCKDB))
            raise UsageError(
                f"--results {printable(str(path))}: unknown ending", remedy=f"choose {endings}"
            )
        if path is not None and path.suffix == _DUCKDB:
            _duckdb()
        self._directory = self._opened_directory()
        while True:
            self.database, opened = self._connected(self._working)
            self._stack.callback(self.database.close)
            if path is None or _is_same(self._working, opened):
                break  # else another command has finished meanwhile, and removed it
        if self._one("PRAGMA user_version") == 0:
            with self.database:
                if path is not None and self._working != path and path.exists():
                    self.database.executescript("BEGIN;" + _SCHEMA)
                    self._import(path)
                else:
                    self.database.executescript("BEGIN;" + _SCHEMA)
        elif self._one("PRAGMA user_version") != _VERSION:
            raise OutputExists(
                f"{printable(str(path))} was written by another version of memdiag",
                remedy="choose another name",
            )

    def _opened_directory(self) -> int:
        try:
            found = safe_open.open_parent(self._working)
        except OSError as error:
            shown = printable(str(self.path or self._working))
            raise CannotMeasure(f"{shown} cannot be opened: {error.strerror}") from error
        self._stack.callback(os.close, found)
        return found

    def _there(self, name: str) -> os.stat_result | None:
        """The file of this name, which may be a link; None if there is none. Raises OSError."""
        try:
            return os.stat(name, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _made(self, name: str) -> os.stat_result:
        """The file of this name, which is made if there is none. Raises OSError."""
        if found := self._there(name):
            return found
        try:
            with safe_open.closing(safe_open.create(name, dir_fd=self._directory)) as fd:
                return os.fstat(fd)
        except FileExistsError:  # another command was faster
            return os.stat(name, dir_fd=self._directory, follow_symlinks=False)

    def _opened_by_name(self, path: Path) -> tuple[sqlite3.Connection, os.stat_result] | None:
        """The database in this file, and which file it is; None for anything but a regular file.

        SQLite opens by name. So it may only open, not create, and before anything is read or
        written its descriptor must be that of the file that was seen here.
        """
        others = [self._there(path.name + ending) for ending in ("", *_BESIDE)]
        if not all(stat.S_ISREG(one.st_mode) for one in others if one):
            return None
        opened = self._made(path.name)
        if not stat.S_ISREG(opened.st_mode):
            return None
        try:
            database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=1.0)
        except sqlite3.OperationalError:
            if self._there(path.name) is None:  # removed by another command that has finished
                return self._opened_by_name(path)
            raise
        if _is_open(opened, path):
            return database, opened
        database.close()
        return None

    def _connected(self, path: Path) -> tuple[sqlite3.Connection, os.stat_result]:
        """The database in this file, locked, and which file it is."""
        shown = printable(str(self.path or path))
        foreign = OutputExists(
            f"{shown} exists and does not hold results of memdiag", remedy="choose another name"
        )
        with contextlib.ExitStack() as failed:
            try:
                found = self._opened_by_name(path)
                if found is None:
                    raise foreign
                database = found[0]
                failed.callback(database.close)
                database.execute("PRAGMA locking_mode = EXCLUSIVE")
                database.execute("BEGIN EXCLUSIVE")
                database.execute("COMMIT")
                ours = database.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION
                empty = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
                if not ours and not empty:
                    raise foreign
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = NORMAL")
                database.execute("PRAGMA cache_size = -8192")
            except sqlite3.OperationalError as error:
                if "locked" in str(error):
                    raise CannotMeasure(
                        f"{shown} is in use by another memdiag", remedy="wait for it to end"
                    ) from error
                raise CannotMeasure(f"{shown} cannot be opened: {error}") from error
            except sqlite3.DatabaseError as error:
                raise foreign from error
            except OSError as error:
                raise CannotMeasure(f"{shown} cannot be opened: {error.strerror}") from error
            failed.pop_all()
            return found

    def _import(self, path: Path) -> None:
        """Fill the tables from a Parquet or DuckDB file."""
        names, rows = rows_of(path)
        if names != _NAMES:
            raise OutputExists(
                f"{printable(str(path))} exists and does not hold results of this memdiag",
                remedy="choose another name",
            )
        at, series_at = len(_RECORDING), names.index("series_number")
        for row in rows:
            self._insert("recordings", [row[:at]])
            if row[series_at] is not None:
                self._insert("series", [(row[0], *row[at:])])

    def _export(self, path: Path) -> None:
        """Write the results to a Parquet or DuckDB file, which is replaced at once."""
        import polars as pl

        with tempfile.TemporaryDirectory(prefix=".memdiag-", dir=path.absolute().parent) as name:
            folder = Path(name)
            cursor = self.database.execute("SELECT * FROM results ORDER BY path, series_number")
            schema = dict(zip(_NAMES, _types(), strict=True))
            number = 0
            while rows := cursor.fetchmany(_ROWS):
                frame = pl.DataFrame(rows, schema=schema, orient="row")
                frame.write_parquet(folder / f"{number:06}.parquet")
                number += 1
            if number == 0:
                pl.DataFrame(schema=schema).write_parquet(folder / "000000.parquet")
            whole = folder / "all"
            pl.scan_parquet(folder / "*.parquet").sink_parquet(whole)
            if path.suffix == _DUCKDB:
                made = folder / "made"
                with _duckdb().connect(str(made)) as database:
                    parquet = str(whole).replace("'", "''")
                    database.execute(
                        f"CREATE TABLE results AS SELECT * FROM read_parquet('{parquet}')"
                    )
                whole = made
            os.replace(whole, path)  # noqa: PTH105


def _types() -> list[Any]:
    import polars as pl

    kinds = {"TEXT": pl.String, "REAL": pl.Float64, "INTEGER": pl.Int64, "BLOB": pl.Binary}
    both = [*_RECORDING.values(), *_SERIES.values()]
    return [kinds[kind.partition(" ")[0]] for kind in both]


def _row(one: SeriesResult) -> list[Any]:
    values = [getattr(one, f.name) for f in fields(SeriesResult)]
    values[-1] = packed(one.points)
    return [value.value if isinstance(value, Verdict) else value for value in values]


def packed(points: Iterable[tuple[float, float]]) -> bytes:
    """The points as doubles for x and floats for y."""
    return b"".join(struct.pack("<df", *point) for point in points)


def unpacked(data: bytes) -> list[tuple[float, float]]:
    """The points of `packed`."""
    return list(struct.iter_unpack("<df", data))


def _is_open(file: os.stat_result, path: Path) -> bool:
    """Return True if a descriptor of this process is of the file. (Where these cannot be listed:
    if it still has its name.)"""
    try:
        names = os.listdir("/dev/fd")  # noqa: PTH208 - numbers
    except OSError:
        return os.path.samestat(path.lstat(), file)
    for name in names:
        with contextlib.suppress(OSError):  # of the list itself
            if os.path.samestat(os.fstat(int(name)), file):
                return True
    return False


def _is_same(path: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), opened)
    except FileNotFoundError:
        return False


def rows_of(path: Path) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """The columns and rows of a file of results; no columns for any other file."""
    if path.suffix in _SQLITE:
        return _rows_of_sqlite(path)
    if path.suffix == _DUCKDB:
        return _rows_of_duckdb(path)
    import polars as pl

    try:
        scanned = pl.scan_parquet(path)
        names = scanned.collect_schema().names()
        count = int(scanned.select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, OSError):
        return [], iter(())

    def rows() -> Iterator[tuple[Any, ...]]:
        for start in range(0, count, _ROWS):
            yield from scanned.slice(start, _ROWS).collect().iter_rows()

    return names, rows()


def _rows_of_sqlite(path: Path) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1.0)
        cursor = database.execute("SELECT * FROM results")
    except sqlite3.Error:
        return [], iter(())

    def rows() -> Iterator[tuple[Any, ...]]:
        with contextlib.closing(database):
            yield from cursor

    return [one[0] for one in cursor.description], rows()


def _rows_of_duckdb(path: Path) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    duckdb = _duckdb()
    try:
        database = duckdb.connect(str(path), read_only=True)
        cursor = database.execute("SELECT * FROM results")
    except duckdb.Error:
        return [], iter(())
    names = [one[0] for one in cursor.description]

    def rows() -> Iterator[tuple[Any, ...]]:
        with database:
            while found := cursor.fetchmany(_ROWS):
                yield from found

    return names, rows()


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise UsageError(
            "--results FILE.duckdb requires duckdb", remedy="pip install 'memdiag[fleet]'"
        ) from error
    return duckdb
