"""What the programs with loops share: their own count, and when to end. Python 3.8 syntax."""

import sys
import time

COUNTED = 40
STEP_S = 0.008
probe = sys.modules["_memdiag_probe"].listener
own = [0]
first = []


def work(seconds=STEP_S, count=1):
    """An iteration, recorded beside the step that the probe has reached."""
    own[0] += count
    probe.counter("own", own[0])
    time.sleep(seconds)


def more():
    """Return True until COUNTED steps were reached since the first."""
    reached = probe.step_state.reached
    if reached and not first:
        first.append(reached)
    return not first or reached < first[0] + COUNTED
