"""`import memdiag.auto` starts the probe in this process, as `memdiag run` would, from here on.

For programs that memdiag does not start: `memdiag watch --pid` then makes the recording. Import it
first: modules that were imported before are detected, earlier events are not. Does nothing if the
probe runs already, and never raises.
"""

from memdiag.probe.arm import arm

arm()
