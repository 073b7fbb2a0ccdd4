"""`import memdiag.auto` watches this process as `memdiag run` would, from this line on.

For programs that are not started by memdiag: the recording is then made by `memdiag watch --pid`.
Put it first: what was imported before is noticed, what happened before is not. Does nothing where
the process is watched already, and never raises.
"""

from memdiag.probe.arm import arm

arm()
