"""Weights & Biases: series, summary, and the report as an artifact."""

from __future__ import annotations

import netrc
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memdiag.destinations.destination import Destination
from memdiag.destinations.messages import PREFIX, End, Judgment, Row, Run, series
from memdiag.destinations.request import checked_directory, checked_url
from memdiag.errors import UsageError

_SERVER = "https://api.wandb.ai"
_PROJECT = "memdiag"
_WITHOUT_SERVER = {"offline", "dryrun", "disabled"}


def checked(where: str, environ: Mapping[str, str]) -> str:
    """`ENTITY/PROJECT` as given. Raises UsageError if the server cannot be used."""
    checked_directory(environ.get("WANDB_DIR") or ".", "WANDB_DIR")
    if environ.get("WANDB_MODE", "").lower() in _WITHOUT_SERVER:
        return where
    server = checked_url(environ.get("WANDB_BASE_URL") or _SERVER, "--to wandb")
    if not environ.get("WANDB_API_KEY") and not _has_key(urlsplit(server).hostname or "", environ):
        raise UsageError(
            "--to wandb needs an API key",
            remedy="wandb login\nor record offline: WANDB_MODE=offline",
        )
    return where


def _has_key(host: str, environ: Mapping[str, str]) -> bool:
    """Return True if `wandb login` has left a key."""
    path = environ.get("NETRC") or "~/.netrc"
    try:
        return netrc.netrc(str(Path(path).expanduser())).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError, RuntimeError):
        return False


class WeightsAndBiases(Destination):
    """The run that the training names by WANDB_RUN_ID, or a run of memdiag."""

    def __init__(self, where: str, environ: Mapping[str, str]) -> None:
        """where: `PROJECT` or `ENTITY/PROJECT`, "" for that of the environment."""
        self._entity, _, self._project = where.rpartition("/")
        os.environ.update(environ)
        self._joined = environ.get("WANDB_RUN_ID", "")

    def start(self, run: Run, say: Callable[[str], None]) -> None:
        import wandb

        settings: dict[str, Any] = {
            "console": "off",
            "disable_code": True,
            "disable_git": True,
            "quiet": True,
            "silent": True,
            "x_disable_stats": True,  # they would be those of this process
        }
        if self._joined:  # the training writes to it as well, and ends it
            settings |= {
                "mode": "shared",
                "x_label": PREFIX,
                "x_primary": False,
                "x_update_finish_state": False,
            }
        is_offline = os.environ.get("WANDB_MODE", "").lower() in _WITHOUT_SERVER
        if is_offline:
            settings.pop("mode", None)
        project = self._project or os.environ.get("WANDB_PROJECT") or _PROJECT
        self._run = wandb.init(
            entity=self._entity or None,
            project=project,
            name=None if self._joined else run.name,
            job_type=None if self._joined else PREFIX,
            settings=wandb.Settings(**settings),
        )
        self._run.define_metric(f"{PREFIX}/at_s", hidden=True)
        self._run.define_metric(f"{PREFIX}/step", hidden=True)
        self._run.define_metric(f"{PREFIX}/*", step_metric=f"{PREFIX}/at_s")
        self._run.config.update({PREFIX: {"program": run.program, "version": run.memdiag}})
        self._artifact = f"{PREFIX}-{self._run.id}"
        say(self._run.dir if is_offline else str(self._run.url or self._run.id))

    def rows(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._run.log({f"{PREFIX}/at_s": row.at_s, **dict(series(row))})

    def judge(self, judgment: Judgment) -> None:
        for name, value in {**judgment.texts(), **judgment.numbers()}.items():
            self._run.summary[f"{PREFIX}/{name}"] = value

    def finish(self, end: End | None) -> None:
        if end is not None:
            self.judge(end.judgment)
            self._keep(end)
        self._run.finish()

    def _keep(self, end: End) -> None:
        import wandb

        if not self._joined:
            self._run.tags = (*(self._run.tags or ()), end.judgment.verdict)
        artifact = wandb.Artifact(self._artifact, type="memory-report")
        for name, path in end.files.items():
            artifact.add_file(path, name=name, policy="mutable")
            if name.endswith(".png"):
                self._run.summary[f"{PREFIX}/picture"] = wandb.Image(path)
        if end.files:
            self._run.log_artifact(artifact)


make = WeightsAndBiases
