"""What leaking memory consists of."""

from __future__ import annotations

import enum


class MemoryKind(enum.Enum):
    """What a leak of host memory consists of."""

    TENSORS = "tensors"  # tensors that Python objects keep
    GRAPH = "graph"  # autograd graphs retained for a possible backward pass
    CYCLES = "cycles"  # in reference cycles that nothing refers to, and that are never collected
    PYTHON_OBJECTS = "python_objects"  # small objects, in Python's own allocator
    NATIVE = "native"  # from malloc, none of these: arrays, long strings, libraries
    NATIVE_OR_TENSORS = "native_or_tensors"  # from malloc, and tensors were not counted
    HOLES = "holes"  # memory in use is stable: malloc keeps fragmented free memory
    MAPPED = "mapped"  # mapped neither by malloc nor by Python
