"""What the probe found in the program: the places that grow, and censuses of what is in memory."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.values.memory_kind import MemoryKind

RUNNING = "running"
OBJECTS, UNREACHED, REGISTERED = "objects", "unreached", "registered"
_OF_THREADS = "_bootstrap"  # the function of `threading` that every thread runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """One name on the way to a place.

    kind: "global", "local", "attribute", "key", "item", "closure", "default", "cache", "wrapped",
    "inside", "unreached": the class of objects that no name leads to; an attribute after it is the
    one by which they lead back to themselves; "objects": the class of objects that are somewhere
    in what the names before it lead to; "registered": the module whose callbacks keep such objects;
    or RUNNING: a function with calls that have not returned. owner: the module of a global
    or a class, the function of a local, the class of an attribute. file, line: where the owner is
    defined, of a running function the line that it is at; "" and 0 for a library.
    """

    kind: str
    name: str
    owner: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """A line of the program. code: its text, "" if it is not recorded. function: what it is in.

    hits: how often a place was seen to grow there; 0 if the line is from the source code. receiver:
    the object of the program that a line which gets native memory calls a method of, without use of
    the result, or sets an item of; "" if it does neither.
    """

    file: str
    line: int
    code: str
    function: str
    hits: int = 0
    receiver: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeLine:
    """A line at which malloc had more in use afterwards, on the average of the steps watched."""

    line: SourceLine
    bytes_per_step: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedLine:
    """A line that allocates memory which stays in use, on the average of the steps recorded.

    kind: what it allocates. is_device: in the memory of a device.
    """

    line: SourceLine
    bytes_per_step: float
    kind: MemoryKind
    is_device: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of a place at one moment. step: None before the first step."""

    at_s: float
    step: int | None
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A place that grows.

    path: the names that lead to it. aliases: other names of the same objects.
    unit: what `sizes` counts: "items", "objects" or "bytes". is_chain: its objects refer to others
    at the same place. is_estimated: its sizes are estimated from some of many objects.
    bytes_per_unit: what one more of them keeps, of it device_bytes_per_unit on devices.
    small_bytes: mean size of the small blocks in that, 0 if there are few.
    hiding_per_unit: objects in C, of class hiding_type, that do not say how much memory they have.
    item_type: class of the newest item. kind: what most of that is. through: what leads to most of
    it and could do without, "view" (of a part of an array or tensor), "traceback" (of an exception)
    or "".
    container: class of the container, "attributes of X" for those of an instance, "" for others.
    bound: its greatest length, or None. lines: where the program probably adds to it, the most
    probable first. makers: of the lines that were seen to get native memory, those that make what
    it holds; known if it hides memory.
    """

    path: tuple[Name, ...]
    unit: str
    sizes: tuple[Size, ...]
    bytes_per_unit: float
    device_bytes_per_unit: float = 0.0
    small_bytes: float = 0.0
    hiding_per_unit: float = 0.0
    hiding_type: str = ""
    item_type: str = ""
    kind: MemoryKind = MemoryKind.PYTHON_OBJECTS
    through: str = ""
    container: str = ""
    bound: int | None = None
    is_chain: bool = False
    is_estimated: bool = False
    aliases: tuple[str, ...] = ()
    lines: tuple[SourceLine, ...] = ()
    makers: tuple[SourceLine, ...] = ()

    @property
    def is_thread(self) -> bool:
        """Return True for threads that have not ended, which their own calls hold."""
        (root, *rest) = self.path
        of_threads = root.owner.rpartition(".")[2] == _OF_THREADS
        return root.kind == "local" and not root.file and of_threads and not rest

    @property
    def is_of_class(self) -> bool:
        """Return True for the objects of a class, wherever they are."""
        return self.path[0].kind in {UNREACHED, REGISTERED} or self.path[-1].kind == OBJECTS

    @property
    def is_delegating(self) -> bool:
        """Return True for generators each of which delegates to the next by `yield from`."""
        is_generator = self.path[-1].kind == "inside" and bool(self.path[-1].file)
        return self.is_chain and is_generator

    @property
    def has_links(self) -> bool:
        """Return True for a chain whose last name is that of its links, behind its head's."""
        return self.is_chain and len(self.path) > 1

    @property
    def host_bytes_per_unit(self) -> float:
        """What one more of them keeps in host memory."""
        return self.bytes_per_unit - self.device_bytes_per_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadFunction:
    """A function whose local variables were not read.

    function: its name (untrusted text). calls: the function that it calls which prevents that.
    """

    function: str
    calls: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessHolders:
    """The places that grow in one process.

    process: its label, "" while only the pid is known. walks: how often they were measured.
    last_s: the last time. native: lines that get native memory, the largest first.
    sees_all_threads: False if lines of some threads were not watched. watched_steps, watched_s: how
    long lines were watched. allocated: lines that allocate what stays in use, the largest first.
    model_bytes, batch_bytes: of the parameters that are trained, and of a batch of data; 0 if
    unknown. activations: bytes of outputs of modules in one step, and the classes of these modules.
    unread: running functions whose local variables were not read.
    """

    pid: int
    process: str = ""
    walks: int
    last_s: float
    holders: tuple[Holder, ...]
    native: tuple[NativeLine, ...] = ()
    sees_all_threads: bool = True
    watched_steps: int = 0
    watched_s: float = 0.0
    allocated: tuple[AllocatedLine, ...] = ()
    model_bytes: int = 0
    batch_bytes: int = 0
    activations: tuple[tuple[int, tuple[str, ...]], ...] = ()
    unread: tuple[UnreadFunction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorGroup:
    """Tensors or arrays that are alike, at one place.

    path: the names that lead to them; () if none was found. type: their class.
    shape, dtype, device: as the framework prints them; shape () and dtype "" for text.
    count: how many there are. size_bytes: of their storages, each counted once.
    has_graph: they have autograd graphs. inside: without a path, the class of an object that holds
    one of them; "" if unknown.
    """

    path: tuple[Name, ...]
    type: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    count: int
    size_bytes: int
    has_graph: bool = False
    inside: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeCount:
    """Objects of one type. size_bytes: of the objects themselves and the storages of tensors."""

    type: str
    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """What was in memory in one process at one moment.

    why: "out_of_memory", "critical", "request" or "regular". took_s: the CPU time that it took.
    tensors, tensor_bytes: all tensors that Python knows of, and their storages.
    groups: the largest groups of tensors and arrays. types: the types with most bytes.
    allocators: readings of the frameworks' allocators, `NAME_READING` to value.
    notes: what was not counted.
    """

    why: str
    at_s: float
    step: int | None
    took_s: float
    tensors: int
    tensor_bytes: int
    groups: tuple[TensorGroup, ...]
    types: tuple[TypeCount, ...]
    allocators: dict[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervention:
    """Memory was freed once.

    action: "gc_collect" (Python's cycles), "empty_cache" (torch's cache of device memory) or
    "malloc_trim" (free memory that malloc holds). took_s: how long the program waited for it.
    before, after: metrics of the process, by their names.
    """

    action: str
    at_s: float
    step: int | None
    took_s: float
    before: dict[str, int]
    after: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessInterventions:
    """The interventions in one process, in order of time. began_s: when steps began.

    process: its label, "" while only the pid is known.
    """

    pid: int
    process: str = ""
    began_s: float
    done: tuple[Intervention, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessCensuses:
    """The censuses of one process, the first and the last ones among them, in order of time.

    process: its label, "" while only the pid is known.
    """

    pid: int
    process: str = ""
    censuses: tuple[Census, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFindings:
    """What the probe found in the processes of a run."""

    holders: tuple[ProcessHolders, ...] = ()
    censuses: tuple[ProcessCensuses, ...] = ()
    interventions: tuple[ProcessInterventions, ...] = ()
