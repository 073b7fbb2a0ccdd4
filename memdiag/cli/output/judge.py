"""The finding on one recording, as every command reports it."""

from __future__ import annotations

from memdiag.cli.options.gate import Gate
from memdiag.values.findings import RecordingFinding
from memdiag.values.measurements import Recording


def judged(recording: Recording, gate: Gate, *, readings: bool = False) -> RecordingFinding:
    """The finding on a recording, with the gate's budgets and the size of its model.

    readings: with the readings that pictures show.
    """
    from memdiag.analysis.attribution.known_sizes import with_model_sizes
    from memdiag.analysis.diagnose import diagnose
    from memdiag.analysis.forecasting.budgets import hold

    found = hold(with_model_sizes(diagnose(recording), gate.model_params), gate.budgets)
    if not readings:
        return found
    from memdiag.analysis.readings import with_readings

    return with_readings(found, recording)
