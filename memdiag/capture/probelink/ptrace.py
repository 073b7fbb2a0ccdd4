"""Makes two calls in a running process: a system call, and one of its functions (ptrace(2)).

A debugger is not used, because gdb parses the target's files and memory, which a hostile user may
have prepared for root. And if gdb cannot restore the registers (gdb 13 on a processor with AMX:
"Couldn't write extended state status") it does not restart the target's system call, which then
fails with error 514. Here nothing of the target is interpreted.

Only the main thread stops. The others continue, so they release their locks. A call returns to a
system call instruction in the vDSO, where the kernel stops it before the system call: no breakpoint
is written, no signal is raised, no executable memory is made. All registers are restored in a stop
before any other instruction, in which the kernel restarts an interrupted system call as usual
(signal handling, not system call exit).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

# linux/ptrace.h, linux/elf.h, linux/wait.h
_CONT, _DETACH, _SYSCALL, _SEIZE, _INTERRUPT = 7, 17, 24, 0x4206, 0x4207
_GETREGSET, _SETREGSET = 0x4204, 0x4205
_TRACESYSGOOD, _EVENT_STOP, _WALL = 1, 128, 0x40000000
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_FAULTS = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP})
_NT_PRSTATUS, _NT_PRFPREG, _NT_X86_XSTATE = 1, 2, 0x202
_NT_ARM_SYSTEM_CALL, _NT_ARM_SVE = 0x404, 0x405
# Of a regset; AMX has 11 kB, SVE with the longest vectors 17 kB.
_MOST_REGSET_BYTES = 64 << 10
_MINUS_ONE = (1 << 64) - 1
_RED_ZONE_BYTES = 256
_PROTECTION, _FLAGS = 3, 0x22  # PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS
_LOOK_S = 0.0001
_TAKE_BACK_S = 1.0


class Refused(Exception):
    """The call could not be made, or did not return; the process continues as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """Indices of the general registers, instructions and numbers of a processor."""

    registers: int
    ip: int
    sp: int
    number: int
    result: int
    call_arguments: tuple[int, ...]
    syscall_arguments: tuple[int, ...]
    instruction: bytes
    alignment: int
    mmap: int
    # Regsets of the vector registers, the widest first: the first that the kernel knows is saved.
    vectors: tuple[int, ...]


_MACHINES = {
    # struct user_regs_struct; System V ABI: six arguments in rdi, rsi, rdx, rcx (r10), r8, r9.
    "x86_64": _Machine(
        registers=27,
        ip=16,
        sp=19,
        number=10,
        result=10,
        call_arguments=(14, 13, 12, 11, 9, 8),
        syscall_arguments=(14, 13, 12, 7, 9, 8),
        instruction=b"\x0f\x05",
        alignment=1,
        mmap=9,
        vectors=(_NT_X86_XSTATE, _NT_PRFPREG),
    ),
    # struct user_pt_regs: x0 to x30, sp, pc, pstate; svc #0.
    "aarch64": _Machine(
        registers=34,
        ip=32,
        sp=31,
        number=8,
        result=0,
        call_arguments=(0, 1, 2, 3, 4, 5),
        syscall_arguments=(0, 1, 2, 3, 4, 5),
        instruction=b"\x01\x00\x00\xd4",
        alignment=4,
        mmap=222,
        vectors=(_NT_ARM_SVE, _NT_PRFPREG),
    ),
}
_X86_ORIG_RAX, _X86_EFLAGS, _X86_DIRECTION, _ARM_LINK = 15, 18, 0x400, 30


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def is_supported() -> bool:
    """Return True if this machine's processor is supported."""
    return platform.machine() in _MACHINES


class Tracee:
    """The main thread of process `pid`, stopped while it is entered.

    patience_s: for the stop, and for each call. stopped_s: how long it was stopped.
    """

    def __init__(self, pid: int, *, patience_s: float) -> None:
        self._pid = pid
        self._patience_s = patience_s
        self._machine = _MACHINES[platform.machine()]
        self._pack = struct.Struct(f"<{self._machine.registers}Q")
        self._memory = -1
        self._is_stopped = False
        self._began_s = 0.0
        self.stopped_s = 0.0

    def __enter__(self) -> Tracee:
        """Raises OSError if it may not be traced, Refused if it does not stop."""
        self._ptrace(_SEIZE, 0, _TRACESYSGOOD)
        self._began_s = time.monotonic()
        try:
            self._stop()  # a concurrent exec has ended then
            self._memory = os.open(f"/proc/{self._pid}/mem", os.O_RDWR | os.O_CLOEXEC)
            self._gate = self._find_gate()
            self._registers = self._general()
            self._vectors = self._first_known(self._machine.vectors)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Restore everything and resume it. A target that has ended is not an error here."""
        try:
            with contextlib.suppress(ProcessLookupError, Refused):
                self._stop()
                self._set(*self._vectors)
                self._set_general(self._registers)
        finally:
            self._leave()

    def map_room(self, size: int) -> int:
        """The address of new memory that can be read and written. Raises OSError, Refused."""
        machine, registers = self._machine, self._prepared()
        registers[machine.ip] = self._gate
        registers[machine.number] = machine.mmap
        arguments = (0, size, _PROTECTION, _FLAGS, _MINUS_ONE, 0)
        _put(registers, machine.syscall_arguments, arguments)
        self._set_general(registers)
        self._run_to_gate(registers[machine.sp])
        self._resume_to_syscall()
        address = self._general()[machine.result]
        if address > _MINUS_ONE - 4096:
            raise OSError(_MINUS_ONE - address + 1, "it could not map memory")
        return address

    def write(self, address: int, data: bytes) -> None:
        """Write bytes to its memory. Raises OSError."""
        os.pwrite(self._memory, data, address)

    def call(self, function: int, *arguments: int) -> int:
        """Call the function at this address; returns a C int. Raises OSError, Refused."""
        machine, registers = self._machine, self._prepared()
        registers[machine.ip] = function
        _put(registers, machine.call_arguments, arguments)
        sp = (registers[machine.sp] - _RED_ZONE_BYTES) & ~15
        if platform.machine() == "x86_64":  # the return address is on the stack
            self.write(sp - 8, struct.pack("<Q", self._gate))
            registers[machine.sp] = sp - 8
        else:
            registers[_ARM_LINK] = self._gate
            registers[machine.sp] = sp
        self._set_general(registers)
        reached = self._run_to_gate(sp)
        result = reached[machine.result if machine.result != machine.number else _X86_ORIG_RAX]
        self._cancel_syscall(reached)
        self._resume_to_syscall()
        return int(ctypes.c_int(result & 0xFFFFFFFF).value)

    def _find_gate(self) -> int:
        """The address of a system call instruction in its vDSO. Raises OSError, Refused."""
        with open(f"/proc/{self._pid}/maps", "rb") as maps:  # noqa: PTH123
            lines = [line for line in maps if line.rstrip().endswith(b"[vdso]")]
        if not lines:
            raise Refused("its memory map shows no vDSO")
        start, end = (int(part, 16) for part in lines[0].split()[0].split(b"-"))
        code = os.pread(self._memory, min(end - start, _MOST_REGSET_BYTES), start)
        instruction = self._machine.instruction
        at = code.find(instruction)
        while at > 0 and at % self._machine.alignment:
            at = code.find(instruction, at + 1)
        if at < 0:
            raise Refused("its vDSO contains no system call")
        return start + at

    def _prepared(self) -> list[int]:
        """The registers for a new call, in which no system call of the target is restarted."""
        registers = list(self._registers)
        if platform.machine() == "x86_64":
            registers[_X86_ORIG_RAX] = _MINUS_ONE
            registers[_X86_EFLAGS] &= ~_X86_DIRECTION
        return registers

    def _cancel_syscall(self, registers: Sequence[int]) -> None:
        """At the entry of a system call: skip it."""
        if platform.machine() == "x86_64":
            changed = list(registers)
            changed[_X86_ORIG_RAX] = _MINUS_ONE
            self._set_general(changed)
        else:
            self._set(_NT_ARM_SYSTEM_CALL, struct.pack("<i", -1))

    def _run_to_gate(self, sp: int) -> list[int]:
        """Resume until the instruction in the vDSO is reached with this stack; the registers."""
        behind = self._gate + len(self._machine.instruction)
        while True:
            self._resume_to_syscall()
            registers = self._general()
            if registers[self._machine.ip] == behind and registers[self._machine.sp] == sp:
                return registers

    def _resume_to_syscall(self) -> None:
        """Resume until a system call begins or ends. Signals are delivered."""
        deliver = 0
        due_s = time.monotonic() + self._patience_s
        while True:
            self._ptrace(_SYSCALL, 0, deliver)
            self._is_stopped = False
            number, event = self._wait(due_s)
            if number == _SYSCALL_STOP:
                return
            if not event and number in _FAULTS:
                raise Refused(f"the call failed with {signal.Signals(number).name}")
            deliver = 0 if event else number

    def _stop(self) -> None:
        """Stop it where the kernel handles signals, before its next instruction.

        Signals that come first are delivered. Raises Refused if it does not stop.
        """
        due_s = time.monotonic() + (self._patience_s if self._is_fresh else _TAKE_BACK_S)
        self._ptrace(_INTERRUPT, 0, 0)
        if self._is_stopped:
            self._ptrace(_CONT, 0, 0)
            self._is_stopped = False
        while True:
            number, event = self._wait(due_s)
            if event == _EVENT_STOP and (number == signal.SIGTRAP or not self._is_fresh):
                return
            if event == _EVENT_STOP:
                raise Refused(f"it is stopped by {signal.Signals(number).name}")
            is_ours = number == _SYSCALL_STOP or (number in _FAULTS and not self._is_fresh)
            if number == _SYSCALL_STOP:  # it may be the one that our call returns to
                self._cancel_syscall(self._general())
            # (This stop has ended the request before. A new one, made while it is stopped, comes
            # into effect before its next instruction.)
            self._ptrace(_INTERRUPT, 0, 0)
            self._ptrace(_CONT, 0, 0 if event or is_ours else number)
            self._is_stopped = False

    @property
    def _is_fresh(self) -> bool:
        """Return True if nothing was changed in it yet."""
        return not hasattr(self, "_vectors")

    def _leave(self) -> None:
        with contextlib.suppress(OSError):
            self._ptrace(_DETACH, 0, 0)
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1
        self.stopped_s = time.monotonic() - self._began_s

    def _wait(self, due_s: float) -> tuple[int, int]:
        """(signal, event) of its next stop. Raises Refused."""
        while True:
            pid, status = os.waitpid(self._pid, os.WNOHANG | _WALL)
            if pid and not os.WIFSTOPPED(status):
                raise Refused("it has ended")
            if pid:
                self._is_stopped = True
                return os.WSTOPSIG(status), status >> 16
            if time.monotonic() >= due_s:
                raise Refused("it took too long")
            time.sleep(_LOOK_S)

    def _general(self) -> list[int]:
        return list(self._pack.unpack(self._get(_NT_PRSTATUS)))

    def _set_general(self, registers: Sequence[int]) -> None:
        self._set(_NT_PRSTATUS, self._pack.pack(*registers))

    def _first_known(self, kinds: Sequence[int]) -> tuple[int, bytes]:
        for kind in kinds[:-1]:
            with contextlib.suppress(OSError):
                return kind, self._get(kind)
        return kinds[-1], self._get(kinds[-1])

    def _get(self, kind: int) -> bytes:
        data = ctypes.create_string_buffer(_MOST_REGSET_BYTES)
        vector = _Iovec(ctypes.addressof(data), _MOST_REGSET_BYTES)
        self._ptrace(_GETREGSET, kind, ctypes.addressof(vector))
        return data.raw[: vector.length]

    def _set(self, kind: int, data: bytes) -> None:
        buffer = ctypes.create_string_buffer(data, len(data))
        vector = _Iovec(ctypes.addressof(buffer), len(data))
        self._ptrace(_SETREGSET, kind, ctypes.addressof(vector))

    def _ptrace(self, request: int, address: int, data: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        libc.ptrace.restype = ctypes.c_long
        if libc.ptrace(request, self._pid, address, data) == -1:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _put(registers: list[int], places: Sequence[int], values: Sequence[int]) -> None:
    for place, value in zip(places, values, strict=False):
        registers[place] = value
