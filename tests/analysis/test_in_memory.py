"""The last census of each process with its growth, and the places that grew in a killed run."""

from __future__ import annotations

from dataclasses import replace

from report import diagnoses
from report.diagnoses import interval

from memdiag.analysis.cause.in_memory import census, grown, grown_places, last_census
from memdiag.values.findings import Plateau
from memdiag.values.holders import (
    Census,
    Holder,
    Name,
    ProcessCensuses,
    ProcessHolders,
    Size,
    SourceLine,
    TensorGroup,
    TypeCount,
)
from memdiag.values.measurements import Cause, Ending, Recording
from memdiag.values.verdict import Reason, Verdict

OUTS = (Name(kind="local", name="outs", owner="main", file="/t.py"), Name(kind="item", name=""))


def group(size_bytes: int, path: tuple[Name, ...] = OUTS) -> TensorGroup:
    return TensorGroup(
        path=path,
        type="Tensor",
        shape=(8, 8),
        dtype="float32",
        device="cpu",
        count=size_bytes // 256,
        size_bytes=size_bytes,
    )


def taken(step: int, size_bytes: int, lists: int = 10, why: str = "regular") -> Census:
    return Census(
        why=why,
        at_s=step / 10,
        step=step,
        took_s=0.1,
        tensors=size_bytes // 256,
        tensor_bytes=size_bytes,
        groups=(group(size_bytes),),
        types=(TypeCount(type="list", count=lists, size_bytes=100 * lists),),
        allocators={},
        notes=(),
    )


def process(*censuses: Census, name: str = "main") -> ProcessCensuses:
    return ProcessCensuses(pid=1, process=name, censuses=censuses)


def holder(*sizes: float, each: float = 1000.0) -> Holder:
    return Holder(
        path=OUTS[:1],
        unit="items",
        sizes=tuple(Size(at_s=float(at), step=10 * at, size=size) for at, size in enumerate(sizes)),
        bytes_per_unit=each,
        container="list",
        lines=(SourceLine(file="/t.py", line=4, code="outs.append(y)", function="main"),),
    )


def recording(
    *holders: Holder, ending: Ending | None, censuses: tuple[ProcessCensuses, ...] = ()
) -> Recording:
    found = ProcessHolders(pid=1, process="main", walks=3, last_s=3.0, holders=holders)
    return Recording(source="a", series=(), holders=(found,), ending=ending, censuses=censuses)


def test_growth_is_that_since_the_first_census() -> None:
    found = last_census(process(taken(10, 2560), taken(50, 5120, lists=30), taken(90, 25600, 25)))
    assert (found.step, found.since_step, found.since_s) == (90, 10, 1.0)
    (outs,) = found.groups
    assert (outs.name, outs.count, outs.grown_bytes) == ("outs[]", 100, 23040)
    assert outs.holder == "`outs[]`, held by local variable of main() `outs`"
    (lists,) = found.types
    assert (lists.grown_count, lists.grown_bytes) == (15, 1500)


def test_group_under_another_name_is_the_same_if_there_is_no_other_of_its_form() -> None:
    other = (Name(kind="local", name="self", owner="keep"), Name(kind="item", name=""))
    renamed = replace(taken(90, 5120), groups=(group(5120, other),))
    assert last_census(process(taken(10, 2560), renamed)).groups[0].grown_bytes == 2560
    two = replace(renamed, groups=(group(5120, other), group(2560)))
    found = last_census(process(taken(10, 2560), two))
    assert [one.grown_bytes for one in found.groups] == [5120, 0]


def test_growth_is_that_since_memory_stabilized() -> None:
    trace = [(float(x), 1e8) for x in range(0, 100, 5)]
    finding = diagnoses.series(trace, Verdict.WARMUP, Reason.PLATEAU)
    plateau = Plateau(since_x=interval(40), lasted_x=60, low_value=1e8, high_value=1e8)
    found = last_census(
        process(taken(10, 2560), taken(50, 5120), taken(90, 5376)),
        replace(finding, plateau=plateau),
    )
    assert found.since_step == 50
    assert found.groups[0].grown_bytes == 256


def test_alone_it_has_no_growth_and_what_is_new_grew_by_all_of_it() -> None:
    assert last_census(process(taken(10, 2560))).groups[0].grown_bytes is None
    new = replace(taken(20, 2560), groups=(group(512, ()), group(2560)), types=())
    found = last_census(process(taken(10, 2560), new))
    assert [(one.name, one.grown_bytes) for one in found.groups] == [("outs[]", 0), ("", 512)]


def test_processes_that_ran_out_of_memory_come_first() -> None:
    censuses = (
        process(taken(10, 25600), name="main"),
        process(taken(10, 256, why="out_of_memory"), name="rank1"),
    )
    found = census(recording(ending=None, censuses=censuses), None)
    assert [one.process for one in found] == ["rank1", "main"]


def test_tensors_of_the_device_come_first_where_its_memory_ran_out() -> None:
    on_device = replace(group(512), device="cuda:0")
    one = replace(taken(10, 2560), groups=(group(256), group(2560), on_device))
    for cause, devices in (
        (Cause.DEVICE_MEMORY, ["cuda:0", "cpu", "cpu"]),
        (Cause.HOST_MEMORY, ["cpu", "cuda:0", "cpu"]),
    ):
        ending = Ending(code=1, cause=cause)
        (found,) = census(recording(ending=ending, censuses=(process(one),)), None)
        assert [each.device for each in found.groups] == devices


def test_places_of_a_killed_run_are_listed_by_growth() -> None:
    small, large, shrunk = holder(1, 2, 3), holder(5, 10, 20, each=1e6), holder(9, 5, 1)
    for ending in (Ending(signal=9), Ending(code=1, cause=Cause.HOST_MEMORY)):
        found = grown(recording(small, large, shrunk, ending=ending))
        assert [one.grown_bytes for one in found] == [15e6, 2000.0]
        assert (found[0].size, found[0].since_step, found[0].line) == (20, 0, 4)
        assert found[0].holder == "list `outs`, local variable of main()"


def test_places_of_other_runs_are_not_listed() -> None:
    assert grown(recording(holder(1, 2, 3), ending=Ending(code=0))) == ()
    assert grown(recording(holder(1, 2, 3), ending=None)) == ()
    with_census = recording(holder(1, 2, 3), ending=None, censuses=(process(taken(1, 256)),))
    assert len(grown(with_census)) == 1


def test_places_that_still_grow_come_before_those_that_have_ended() -> None:
    ended = holder(0, 500, 1000, 1000, 1000, 1000, 1000)
    path = (Name(kind="local", name="late", owner="main", file="/t.py"),)
    late = replace(holder(0, 0, 0, 10, 20, 30, 40), path=path)
    found = grown_places([ProcessHolders(pid=1, walks=7, last_s=6.0, holders=(ended, late))])
    assert [(one.holder.split("`")[1], one.still_grows) for one in found] == [
        ("late", True),
        ("outs", False),
    ]
