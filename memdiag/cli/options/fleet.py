"""The options for many recordings: where they are judged, and where the results are kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memdiag.cli.options.declare import option
from memdiag.values.units import invalid

# What is behind other URLs can be piped to memdiag without further packages.
_STORE = re.compile(r"(?!https?:)\w+://")
_PANEL = "Many recordings"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """How `analyze` judges many recordings."""

    engine: str = option(
        "--engine",
        "NAME",
        "Judge the files on local processes, dask, ray, mpi or spark, and print a summary.",
        default="",
        panel=_PANEL,
    )
    engine_address: str = option(
        "--engine-address",
        "ADDRESS",
        "The running cluster of the engine; by default one is started on this machine.",
        default="",
        panel=_PANEL,
    )
    jobs: int | None = option(
        "--jobs", "N", "Workers to start.  [default: one for each core]", low=1, panel=_PANEL
    )
    results: Path | None = option(
        "--results",
        "FILE",
        "Keep a row for each recording and series in FILE (.sqlite, .parquet, .duckdb), and judge "
        "only what is new or changed since.",
        parse=Path,
        panel=_PANEL,
    )

    group_by: str = option(
        "--group-by",
        "LABELS",
        "Judge recordings with the same labels (job, directory, branch, ...) as the ranks of one "
        "job; none: each by itself.  [default: job]",
        default="",
        panel=_PANEL,
    )

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels by which jobs are recognized."""
        if self.group_by.strip() == "none":
            return ()
        found = tuple(part.strip() for part in self.group_by.split(",") if part.strip())
        for label in found:
            if not label.replace("_", "").replace("-", "").isalnum():
                raise invalid(label, "--group-by", "not a label", "--group-by directory")
        return found or ("job",)

    def are_for(self, files: Sequence[str]) -> bool:
        """Return True if these files are judged by workers."""
        given = self.engine or self.engine_address or self.jobs or self.results or self.group_by
        return bool(given) or any(_STORE.match(one) or one.startswith("@") for one in files)
