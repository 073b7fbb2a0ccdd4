"""Identity of this process, for the header of its ring."""

from __future__ import annotations

import os
import sys
import time

from . import ring_format
from .guard import ours

_UNKNOWN = -1
# Variables of torchrun and compatible launchers, then Slurm, Open MPI and MPICH.
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
_WORLD_SIZES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
# The role of a spawned child until it has read its task from its parent.
UNNAMED_CHILD = "multiprocessing child"
_ROLES = (
    ("multiprocessing.resource_tracker", "resource tracker"),
    ("multiprocessing.forkserver", "fork server"),
    ("--multiprocessing-fork", UNNAMED_CHILD),
)


class ProcessIdentity:
    """The contents of a ring's header."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.program = _command_line()
        self.role = next((role for mark, role in _ROLES if mark in self.program), "")
        self.ranks = ranks()

    def pack_into(self, page: bytearray) -> None:
        """Write the header to the first page of a ring."""
        now_s, wall_s = time.monotonic(), time.time()
        about = (self.pid, os.getppid(), started_ticks(), now_s, wall_s)
        page[: len(ring_format.MAGIC)] = ring_format.MAGIC
        ring_format.HEADER.pack_into(
            page, ring_format.HEADER_AT, *about, *self.ranks, sys.hexversion
        )
        for at, text, room in (
            (ring_format.ROLE_AT, self.role, ring_format.ROLE_BYTES),
            (ring_format.PROGRAM_AT, self.program, ring_format.PROGRAM_BYTES),
        ):
            entry = ring_format.text_bytes(text, room)
            page[at : at + len(entry)] = entry


def ranks() -> tuple[int, int, int]:
    """Rank, local rank and world size from the environment or torch, -1 if unknown.

    Batch systems set the variables for every job, so a world of size 1 counts as unknown.
    """
    world = _number(_WORLD_SIZES)
    if world > 1 and _number(_RANKS) != _UNKNOWN:
        return _number(_RANKS), _number(_LOCAL_RANKS), world
    rank, world = _torch_distributed_ranks()
    if world <= 1:
        return _UNKNOWN, _UNKNOWN, _UNKNOWN
    return rank, _number(_LOCAL_RANKS), world


def _torch_distributed_ranks() -> tuple[int, int]:
    """Rank and world size of a program that passes them only to `init_process_group`."""
    distributed = sys.modules.get("torch.distributed")
    # (The function is missing while the module is being imported.)
    begun = getattr(distributed, "is_initialized", None)
    if distributed is None or begun is None or not begun():
        return _UNKNOWN, _UNKNOWN
    return distributed.get_rank(), distributed.get_world_size()


def started_ticks() -> int:
    """Start time of the process in clock ticks since boot; 0 without /proc."""
    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
            return int(file.read().rpartition(b")")[2].split()[19])
    except ours(OSError, ValueError, IndexError):
        return 0


def _command_line() -> str:
    try:
        with open("/proc/self/cmdline", "rb") as file:  # noqa: PTH123
            raw = file.read(4096)
    except ours(OSError):
        return " ".join(getattr(sys, "argv", ()))
    return raw.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "backslashreplace")


def _number(variables: tuple[str, ...]) -> int:
    for variable in variables:
        text = os.environ.get(variable, "")
        if text.isdecimal() and len(text) < 10:
            return int(text)
    return _UNKNOWN
