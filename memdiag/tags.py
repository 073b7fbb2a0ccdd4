"""The public tags: `step`, `phase`, `counter`."""

from __future__ import annotations

