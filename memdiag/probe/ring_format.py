"""The channel's file format: written inside the target, read by memdiag's sampler.

One file per process, `<pid>-<nanoseconds of the monotonic clock>.ring`, in a private directory:

    0       magic, written last: a file without it is not ready
    8       HEADER: identity of the process (little-endian, fixed size)
    256     text: the process's role ("DataLoader worker 3"), one length byte, then UTF-8
    384     text: the program, as for the role
    4096    NAMES names of phases, counters and notes, NAME_BYTES each, as for the role
    36864   RECORDS records of RECORD_BYTES: a ring

A name is written before the first record that refers to it and never changes. Record number n
(from 0) lies in slot n % RECORDS and has n + 1 in its first *and* in its last field; if the two
differ, the record is being overwritten. There is no lock and no reader position: any number of
readers may follow, unknown to the writer.
"""

from __future__ import annotations

import struct

MAGIC = b"MDRING02"
SUFFIX = ".ring"
# Beside the ring of a process, as JSON: the places in it that grow (`holder_sampler`), what was in
# memory at some moments (`census_sampler`), what came back when memory was freed (`interventions`).
HOLDERS_SUFFIX, CENSUS_SUFFIX, INTERVENTIONS_SUFFIX = ".holders", ".census", ".interventions"
NEW_SUFFIX = "-new"  # of the file that replaces one of these
# A file by which memdiag asks a process for a census, and for more.
REQUEST_SUFFIX = ".request"
# Of a file that stays while memory is at a level, until the probe has seen it.
PRESSURE_SUFFIXES = {level: f".{level}-pressure" for level in ("warn", "critical", "leak")}
WALK_OFTEN = "walk_often"  # a request to look for what grows as often as is useful
DIRECTORY_VARIABLE = "MEMDIAG_CHANNEL"
# "never": do not look for what grows; "always": as often as is useful, whatever it takes.
EXPLAIN_VARIABLE = "MEMDIAG_EXPLAIN"
# "1": count what is in memory from time to time.
CENSUS_VARIABLE = "MEMDIAG_CENSUS"
# "1": free memory a few times, and record what came back.
INTERVENE_VARIABLE = "MEMDIAG_INTERVENE"
# Where to leave torch's snapshot of GPU memory: DEVICE:INODE:PATH, the numbers of the directory of
# the recording, and the recording's path without its suffix. (`MEMDIAG_SNAPSHOT` is the option of a
# memdiag that the target starts.)
SNAPSHOT_VARIABLE = "MEMDIAG_BESIDE"
# In a channel for probes that detach with their watcher, the watcher locks this file (flock).
WATCHER = "watcher"

# pid, parent, start time in clock ticks (field 22 of /proc/PID/stat, 0 without /proc),
# created on the monotonic clock (s) and on the wall clock (s), rank, local rank, world size,
# Python's version as sys.hexversion. Absent: -1.
HEADER = struct.Struct("<qqqddiiii")
HEADER_AT = len(MAGIC)
RANKS = struct.Struct("<iii")
RANKS_AT = HEADER_AT + 5 * 8

ROLE_AT = 256
ROLE_BYTES = 128
PROGRAM_AT = 384
PROGRAM_BYTES = 256

NAMES = 256
NAME_BYTES = 128
NAMES_AT = 4096
NO_NAME = 0
# The last name stands for all names that did not fit into the table.
OTHER_NAME = NAMES - 1
OTHER_TEXT = "(other)"

# What a block of Python's own allocator has on average, which hands out 16 to 512 bytes: 87 over
# the dictionaries, strings and numbers of `python_objects` in benchmarks/programs; 91 over all
# blocks in use after an import of torch, 32 to 66 in histories (benchmarks/block_bytes.py).
BLOCK_BYTES = 87

# The readings that a record may carry, in this order, by their metric names. Absent: -1.
READINGS = (
    "rss_bytes",
    "malloc_bytes",
    "python_blocks",
    "tensors",
    "vram_allocated_bytes",
    "vram_reserved_bytes",
    "malloc_free_bytes",
    "gc_full_collections",
    "gc_full_freed_objects",
    "gc_young_freed_objects",
)
ABSENT = -1
READING = struct.Struct("<10q")
NO_READINGS = READING.pack(*(ABSENT,) * len(READINGS))

# The readings of a TENSOR_COUNTS record, in the same place.
TENSOR_COUNT_READINGS = (
    "tensors",
    "tensors_cpu",
    "tensors_cuda",
    "tensors_other",
    "tensor_bytes",
    "graph_nodes",
    "gc_objects",
    "gc_enabled",
    "gc_unreachable_bytes",
    "gc_unreachable_device_bytes",
)

# The readings of an ALLOCATOR record, in the same place. Its name is the framework's allocator, its
# metrics are `<allocator>_<reading>`. CUDA's allocated and reserved bytes come with the steps.
ALLOCATORS = ("vram", "xpu", "mps", "jax", "tensorflow")
ALLOCATOR_READINGS = (
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "allocations",
    "alloc_retries",
    "ooms",
    "arrays",
    "array_bytes",
    "spare_2",
)

# number + 1, seconds on the monotonic clock, kind and flags, name, thread (0: the main thread),
# step, value, the readings (READING), number + 1.
RECORD = struct.Struct("<QdHHIqd80sQ")
RECORD_BYTES = RECORD.size
RECORDS = 4096
RECORDS_AT = NAMES_AT + NAMES * NAME_BYTES
FILE_BYTES = RECORDS_AT + RECORDS * RECORD_BYTES

NO_STEP = -(1 << 63)
NO_VALUE = float("nan")

STEP = 1  # step `step` has ended
# For phases, `value` is the number of open phases of the thread afterwards.
PHASE_BEGIN = 2  # phase `name` begins, inside the open phases of this thread
PHASE_END = 3  # the innermost open phase `name` of this thread ends, with those inside
COUNTER = 4  # the user's counter `name` has `value`
SAMPLE = 5  # readings alone
NOTE = 6  # `name` is a sentence on why something is missing
ALLOCATOR = 7  # readings of the allocator `name` (ALLOCATOR_READINGS)
# The program ends because it is out of memory: `name` is the text of its last exception, `value` 1
# for a device's memory, 2 for the host's.
OUT_OF_MEMORY = 8
TENSOR_COUNTS = 9  # a count of all objects (TENSOR_COUNT_READINGS)
# `value` is 1 where the program's own work begins, after its imports, and 0 where it ends and
# Python begins to free what is left.
WORK = 10
KIND_MASK = 0xFF
# From the probe itself, not from a tag in the program. At most one such phase is open: a new one
# ends the one before.
AUTO = 0x100
# With STEP and AUTO: an iteration of a loop. Any other source of steps has priority.
LOOP = 0x200


def text_bytes(text: str, room: int) -> bytes:
    """`text` for a field of `room` bytes: a length byte and UTF-8, cut between characters."""
    encoded = text.encode("utf-8", "backslashreplace")[: min(room - 1, 255)]
    encoded = encoded.decode("utf-8", "ignore").encode("utf-8")
    return bytes((len(encoded),)) + encoded


def text_at(data: bytes, at: int) -> str:
    """The text that `text_bytes` has encoded at offset `at` of `data`; "" if there is none."""
    length = data[at] if at < len(data) else 0
    return data[at + 1 : at + 1 + length].decode("utf-8", "replace")
