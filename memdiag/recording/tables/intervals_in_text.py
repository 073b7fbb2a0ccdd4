"""Readings of a monitor without times, where the text around them says how far apart they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from memdiag.recording.tables.assemble import Plan
from memdiag.recording.tables.axis import Candidate
from memdiag.recording.tables.table import Table
from memdiag.values.measurements import Axis, AxisKind


def at_intervals(table: Table, plan: Plan, interval_s: float) -> tuple[Table, Plan]:
    """The table with a note and the plan with an axis of seconds, if the readings are only counted,
    or are of one process and not even that.
    """
    is_counted = [one.axis.kind is AxisKind.TICK for one in plan.axes]
    is_one = not plan.labels and plan.pid is None and plan.generation is None
    if not (all(is_counted) if is_counted else is_one):
        return table, plan
    turns = plan.axes[0].values if plan.axes else np.arange(float(len(table)))
    axis = Axis(name="elapsed time (s)", kind=AxisKind.SECONDS)
    candidate = Candidate(axis=axis, values=turns * interval_s, rank=0)
    note = f"readings are taken to be {interval_s:g} s apart, as the text says"
    return (
        replace(table, notes=(*table.notes, note)),
        replace(plan, axes=(candidate,)),
    )
