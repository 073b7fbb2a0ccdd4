"""Reads how far running loops are, where Python reports no jumps (CPython 3.8 to 3.11).

A sample of the stacks says which loops of the program are running. The position of a `for` is in
its iterator, on the value stack of the frame. A `while`, and a `for` over an iterator that does not
count, has a position if it adds a constant to a variable (`step += 1`). Both are read from the
process's own memory through /proc/self/mem: no code of the program runs, nothing is kept alive, and
an address that is not valid any more is an error, not a crash. As other threads run meanwhile, each
position is read twice, and counts only if both readings agree.

The layouts are those of CPython's cpython/frameobject.h and internal/pycore_frame.h. They are
checked against loops of this module before use.
"""

from __future__ import annotations

import itertools
import opcode
import os
import struct
import sys
from _thread import get_ident
from time import monotonic

from .guard import ours
from .loops import ENDED_AFTER_S, LIBRARY, OWN, Loop, is_package, is_standard_library, line_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType
    from typing import Any

    # Code, position, address of the frame, and the globals of a function that runs.
    Call = tuple[CodeType, int, int, dict[str, Any]]

_MEMORY = "/proc/self/mem"
# Limits of the functions that are looked at, and of their bytecode. Heuristic.
_MAX_FUNCTIONS, _MAX_BYTECODE = 64, 20_000
# The deepest part of a value stack that is read.
_MOST_SLOTS = 32
# Two readings, 0.1 ms apart, agree if they differ by at most this. Heuristic.
_AGREE = 2
_IMPORT = "<frozen importlib"
# Iterators in iterators, as zip(enumerate(...)).
_MOST_INSIDE = 4

_WORD = 8
# Offsets in bytes, with 64-bit addresses: of any object, of integers, of tuples,
_TYPE, _INTEGER_SIZE, _INTEGER_DIGITS, _TUPLE_ITEMS = 8, 16, 24, 24
# of a type (tp_iternext), of a frame up to 3.10 (f_valuestack), of a frame of 3.11 (f_frame) and of
# what it refers to (localsplus).
_ITERNEXT, _VALUE_STACK, _FRAME, _LOCALS = 224, 64, 24, 72
_DIGIT_BITS, _MOST_DIGITS = 30, 2
# Where an iterator has the number of items that it has given.
_POSITIONS = {
    id(type(one)): at
    for one, at in (
        (iter([]), 16),
        (iter(()), 16),
        (iter(range(0)), 16),
        (iter(""), 16),
        (iter(b""), 16),
        (enumerate(()), 16),
        (itertools.count(), 16),
        (itertools.islice((), 0), 48),
        (iter({}), 32),
        (iter({}.items()), 32),
        (iter({}.values()), 32),
    )
}
# Iterators that have the position of another one: where that is, and if it is the first of a tuple.
_INSIDE = {
    id(type(zip())): (24, True),
    id(type(map(abs, ()))): (16, True),
    id(type(filter(None, ()))): (24, False),
}

_NAMES = opcode.opname
_EXTENDED = opcode.opmap["EXTENDED_ARG"]
_FOR = opcode.opmap["FOR_ITER"]
_UNIT = 2 if sys.version_info >= (3, 10) else 1
_ADDITIONS = {"INPLACE_ADD": None, "BINARY_ADD": None, "BINARY_OP": (0, 13)}
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL")


def open_positions() -> LoopPositions | None:
    """Return None where positions cannot be read."""
    is_known = sys.implementation.name == "cpython" and (3, 8) <= sys.version_info[:2] <= (3, 11)
    if not is_known or struct.calcsize("P") != _WORD:
        return None
    try:
        found = LoopPositions()
        return found if found.is_right_about_itself() else None
    except ours(OSError):
        return None


class Scope:
    """A loop in the bytecode of a function.

    head, end: the first instruction, and the last jump back to it.
    counters: variables that get a constant added: index (-1 if it is a global), name, constant.
    """

    __slots__ = ("counters", "end", "head", "is_for")

    def __init__(self, head: int, *, is_for: bool) -> None:
        self.head = self.end = head
        self.is_for = is_for
        self.counters: list[tuple[int, str, int]] = []


class _Known:
    """Where a loop was at the last sample. around: positions of the loops around it."""

    __slots__ = ("around", "at", "longest")

    def __init__(self, at: int, around: tuple[int, ...]) -> None:
        self.at = self.longest = at
        self.around = around


class LoopPositions:
    """The loops of the running functions, by function and head. The interface of `LoopEvents`."""

    counts_by_itself = False

    def __init__(self) -> None:
        self.loops: dict[tuple[int, int], Loop] = {}
        self._known: dict[tuple[int, int], _Known] = {}
        self._scopes: dict[int, tuple[CodeType, list[Scope]]] = {}

    def close(self) -> None:
        """Forget the loops."""
        self.loops.clear()
        self._known.clear()
        self._scopes.clear()

    def find_functions(self) -> None:
        """Do nothing: all that is on a stack is read."""

    @staticmethod
    def has_one_head(loop: Loop) -> bool:
        """Return True: the heads of a `while` are one loop here."""
        return True

    def sample(self) -> None:
        """Read the positions of the running loops of all other threads.

        A thread that leaves its functions meanwhile is left out this time: its frames may be gone.
        Raises OSError where memory cannot be opened.
        """
        now_s, own = monotonic(), get_ident()
        stacks = []
        for thread, frame in sys._current_frames().items():
            if thread != own:
                stacks.append((thread, _calls(frame)))
        del frame
        memory = os.open(_MEMORY, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for thread, calls in stacks:
                try:
                    self._follow(memory, calls, thread, now_s)
                except ours(OSError, OverflowError, struct.error):
                    continue
        finally:
            os.close(memory)

    def is_right_about_itself(self) -> bool:
        """Check what this module knows of this Python with loops of its own. Raises OSError."""
        rounds = 0
        memory = os.open(_MEMORY, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for i in range(5, 9):
                for n, _ in enumerate("abc"):
                    while True:
                        rounds += 5
                        if i == 7 and n == 1:
                            found = self._positions(memory, _calls(sys._getframe())[-1])
                            return [at for _, at, _ in found] == [3, 2, 22]
                        if rounds % 3 == 0:
                            break
            return False
        finally:
            os.close(memory)

    def _follow(self, memory: int, calls: list[Call], thread: int, now_s: float) -> None:
        around: tuple[int, ...] = ()
        importing = False
        for depth, call in enumerate(calls):
            code = call[0]
            importing = importing or code.co_filename.startswith(_IMPORT)
            if is_standard_library(code) or (importing and is_package(code)):
                continue
            first = self._positions(memory, call)
            second = self._positions(memory, call) if first else []
            if [one[0] for one in first] != [one[0] for one in second]:
                continue
            for (scope, before, _), (_, at, is_variable) in zip(first, second):
                if 0 <= at - before <= _AGREE:
                    loop = self._loop(code, scope, depth, thread, now_s)
                    if loop is not None:
                        self._advance(loop, at, () if is_variable else around, now_s)
                around = (*around, at)

    def _loop(
        self, code: CodeType, scope: Scope, depth: int, thread: int, now_s: float
    ) -> Loop | None:
        loop = self.loops.get((id(code), scope.head))
        if loop is None:
            owner = LIBRARY if is_package(code) else OWN
            loop = Loop(code, scope.head, depth, thread, owner)
            loop.end, loop.began_s = scope.end, now_s
            self.loops[(id(code), scope.head)] = loop
        elif loop.thread != thread:
            if now_s - loop.seen_s() <= ENDED_AFTER_S:
                return None
            loop.thread = thread  # its thread has ended
        loop.depth, loop.active_s = depth, now_s
        return loop

    def _advance(self, loop: Loop, at: int, around: tuple[int, ...], now_s: float) -> None:
        """Count what a loop has done since the last sample.

        If it has begun anew meanwhile, it went as far before as in its longest pass so far.
        """
        key = (id(loop.code), loop.head)
        known = self._known.get(key)
        if known is None:
            self._known[key] = _Known(at, around)
            return
        if at >= known.at and around == known.around:
            by = at - known.at
        else:
            by = max(0, known.longest - known.at) + at
        known.at, known.around, known.longest = at, around, max(known.longest, at)
        if by:
            loop.advance(by, now_s)

    def _positions(self, memory: int, call: Call) -> list[tuple[Scope, int, bool]]:
        """The running loops of a function, where each is, and if a variable says so."""
        code, lasti, _, _ = call
        scopes = [scope for scope in self._scopes_of(code) if scope.head <= lasti <= scope.end]
        if not scopes:
            return []
        variables, stack = _addresses(memory, call)
        iterators = _iterators(memory, stack, code, sum(scope.is_for for scope in scopes))
        found = []
        for scope in scopes:
            at = _position(memory, next(iterators, 0)) if scope.is_for else None
            is_variable = at is None
            for counter in scope.counters if is_variable else ():
                at = _variable(memory, variables, call[3], counter)
                if at is not None:
                    break
            if at is not None:
                found.append((scope, at, is_variable))
        return found

    def _scopes_of(self, code: CodeType) -> list[Scope]:
        known = self._scopes.get(id(code))
        if known is None:
            if len(self._scopes) >= _MAX_FUNCTIONS or len(code.co_code) > _MAX_BYTECODE:
                return []
            known = self._scopes[id(code)] = code, scopes_of(code)
        return known[1]


def scopes_of(code: CodeType) -> list[Scope]:
    """The loops of a function, the outer ones first."""
    scopes: dict[tuple[int, int], Scope] = {}
    instructions = [one for one in _instructions(code.co_code) if _NAMES[one[1]] != "CACHE"]
    operations = {at: operation for at, operation, _, _ in instructions}
    for at, operation, argument, after in instructions:
        head = _target(after, operation, argument)
        if head is None or head >= at:
            continue
        is_for = operations.get(head) == _FOR
        # Heads of one `while` differ: `continue` jumps to the test, the end to the body.
        key = (head, 0) if is_for else (0, min(line_at(code, head), line_at(code, at)))
        scope = scopes.setdefault(key, Scope(head, is_for=is_for))
        scope.head, scope.end = min(scope.head, head), max(scope.end, at)
    found = sorted(scopes.values(), key=lambda scope: (scope.head, -scope.end))
    for at, index, name, constant in _additions(code, instructions):
        inside = [scope for scope in found if scope.head <= at <= scope.end]
        if inside:
            inside[-1].counters.append((index, name, constant))
    return found


def _instructions(bytecode: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Offset (of its first EXTENDED_ARG), operation, argument, offset behind it."""
    extended, began = 0, -1
    for at in range(0, len(bytecode), 2):
        operation, argument = bytecode[at], bytecode[at + 1] | extended
        began = at if began < 0 else began
        if operation == _EXTENDED:
            extended = argument << 8
            continue
        yield began, operation, argument, at + 2
        extended, began = 0, -1


def _target(after: int, operation: int, argument: int) -> int | None:
    """Where a jump back goes to. after: the offset behind it."""
    name = _NAMES[operation]
    if "BACKWARD" in name:
        return None if "NO_INTERRUPT" in name else after - argument * _UNIT
    return argument * _UNIT if operation in opcode.hasjabs else None


def _additions(
    code: CodeType, instructions: list[tuple[int, int, int, int]]
) -> Iterator[tuple[int, int, str, int]]:
    """Offset, index and name of each local or global variable that gets a constant added."""
    for constant, add, store in zip(instructions, instructions[1:], instructions[2:]):
        arguments = _ADDITIONS.get(_NAMES[add[1]], ())
        if arguments is not None and add[2] not in arguments:
            continue
        kind = _NAMES[store[1]]
        if _NAMES[constant[1]] != "LOAD_CONST" or kind not in _STORES:
            continue
        value = code.co_consts[constant[2]]
        if type(value) is int and value > 0:
            is_local = kind == "STORE_FAST"
            name = (code.co_varnames if is_local else code.co_names)[store[2]]
            yield store[0], store[2] if is_local else -1, name, value


def _calls(frame: FrameType | None) -> list[Call]:
    """The functions that run, the outermost first."""
    calls = []
    while frame is not None:
        calls.append((frame.f_code, frame.f_lasti, id(frame), frame.f_globals))
        frame = frame.f_back
    calls.reverse()
    return calls


def _word(memory: int, address: int) -> int:
    found: int = struct.unpack("P", os.pread(memory, _WORD, address))[0]
    return found


def _addresses(memory: int, call: Call) -> tuple[int, int]:
    """Of the local variables, and of the value stack."""
    code, _, frame, _ = call
    own = [name for name in code.co_cellvars if name not in code.co_varnames]
    is_311 = sys.version_info >= (3, 11)
    cells = own if is_311 else code.co_cellvars
    number = _WORD * (len(code.co_varnames) + len(cells) + len(code.co_freevars))
    if is_311:
        variables = _word(memory, frame + _FRAME) + _LOCALS
        return variables, variables + number
    stack = _word(memory, frame + _VALUE_STACK)
    return stack - number, stack


def _iterators(memory: int, stack: int, code: CodeType, number: int) -> Iterator[int]:
    """The addresses of the first iterators on a value stack: those of the running `for` loops."""
    for at in range(min(code.co_stacksize, _MOST_SLOTS)):
        if number <= 0:
            return
        address = _word(memory, stack + at * _WORD)
        if address and _word(memory, _word(memory, address + _TYPE) + _ITERNEXT):
            number -= 1
            yield address


def _position(memory: int, address: int) -> int | None:
    """How many items an iterator has given, None if it does not know."""
    for _ in range(_MOST_INSIDE):
        if not address:
            return None
        kind = _word(memory, address + _TYPE)
        at = _POSITIONS.get(kind)
        if at is not None:
            return _word(memory, address + at)
        if kind not in _INSIDE:
            return None
        at, is_tuple = _INSIDE[kind]
        address = _word(memory, address + at)
        if is_tuple and address:
            address = _word(memory, address + _TUPLE_ITEMS)
    return None


def _variable(
    memory: int, variables: int, names: dict[str, Any], counter: tuple[int, str, int]
) -> int | None:
    """The value of a counting variable, in units of what is added to it."""
    index, name, constant = counter
    if index < 0:
        named = dict.get(names, name)
        return named // constant if type(named) is int else None
    address = _word(memory, variables + index * _WORD)
    if not address or _word(memory, address + _TYPE) != id(int):
        return None
    digits = _word(memory, address + _INTEGER_SIZE)
    if digits > _MOST_DIGITS:
        return None
    parts = struct.unpack("2I", os.pread(memory, _WORD, address + _INTEGER_DIGITS))
    value: int = sum(part << _DIGIT_BITS * i for i, part in enumerate(parts[:digits]))
    return value // constant
