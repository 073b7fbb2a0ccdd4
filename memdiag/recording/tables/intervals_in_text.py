"""Readings of a monitor without times, where the text around them says how far apart they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from memdiag.recording.parsing.cells import has_any_number
from memdiag.recording.tables.assemble import Plan
from memdiag.recording.tables.axis import Candidate
from memdiag.recording.tables.table import Table
from memdiag.values.measurements import Axis, AxisKind


def at_intervals(table: Table, plan: Plan, interval_s: float) -> Plan | None:
    """The plan with an axis of seconds, if the readings are only counted, or not even that and are
    all that is in the table: words in its rows may say what each is of. None otherwise.
    """
    is_counted = [one.axis.kind is AxisKind.TICK for one in plan.axes]
    if not (all(is_counted) if is_counted else all(map(has_any_number, table.columns))):
        return None
    turns = plan.axes[0].values if plan.axes else np.arange(float(len(table)))
    axis = Axis(name="elapsed time (s)", kind=AxisKind.SECONDS)
    return replace(plan, axes=(Candidate(axis=axis, values=turns * interval_s, rank=0),))
