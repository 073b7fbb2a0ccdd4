"""Places are named by their share of the growth in use, and only where they explain it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from report import diagnoses
from report.diagnoses import interval

from memdiag.analysis.cause.find import cause, leaking_by_names, watching
from memdiag.values.findings import Finding, Fix, GrowthPart, How, Leaking, WholeGrowth
from memdiag.values.holders import (
    AllocatedLine,
    Holder,
    Name,
    NativeLine,
    ProcessHolders,
    Size,
    SourceLine,
)
from memdiag.values.measurements import Axis, AxisKind, Series, Unit
from memdiag.values.memory_kind import MemoryKind
from memdiag.values.metrics import METRIC_ROLES
from memdiag.values.verdict import Reason, Verdict

STEP_S = 0.01
STEPS = 2000
STEP = Axis(name="step", kind=AxisKind.STEP)
LINE = SourceLine(file="/train.py", line=9, code="losses.append(loss)", function="main")


def finding(metric: str, per_step: float, process: str = "main") -> Finding:
    trace = [(float(x), 1e8 + per_step * x) for x in range(0, STEPS + 1, 40)]
    leaks = per_step > 0
    verdict, reason = Verdict.LEAK, Reason.OUTLASTS_WARMUP
    if not leaks:
        verdict, reason = Verdict.STABLE, Reason.FLAT
    found = diagnoses.series(trace, verdict, reason)
    return replace(
        found,
        metric=metric,
        process=process,
        role=METRIC_ROLES[metric],
        unit=Unit.BYTES if metric.endswith("_bytes") else Unit.COUNT,
        growth_per_x=interval(per_step),
    )


def series(found: Finding) -> Series:
    x = np.arange(0.0, STEPS + 1, 10)
    return Series(
        metric=found.metric,
        column=found.column,
        role=found.role,
        unit=found.unit,
        axis=STEP,
        x=x,
        y=np.full(len(x), np.nan),
        at_s=x * STEP_S,
    )


def history(*sizes: float, with_steps: bool = True) -> tuple[Size, ...]:
    """Sizes at equal distances over the run."""
    steps = np.linspace(0, STEPS, len(sizes))
    return tuple(
        Size(at_s=at * STEP_S, step=int(at) if with_steps else None, size=size)
        for at, size in zip(steps, sizes, strict=True)
    )


def holder(name: str, sizes: tuple[Size, ...], each: float = 5000.0, **more: object) -> Holder:
    values: dict[str, object] = {
        "path": (Name(kind="local", name=name, owner="main", file="/train.py"),),
        "unit": "items",
        "sizes": sizes,
        "bytes_per_unit": each,
        "container": "list",
        "lines": (LINE,),
        **more,
    }
    return Holder(**values)  # type: ignore[arg-type]


def in_process(*holders: Holder, process: str = "main") -> ProcessHolders:
    return ProcessHolders(pid=1, process=process, walks=5, last_s=20.0, holders=holders)


GROWING = history(0, 500, 1000, 1500, 2000)
LEAK = (finding("malloc_bytes", 5200.0), finding("python_blocks", 2.0))

SERIES = [series(one) for one in LEAK]


def caused(*recorded: ProcessHolders, by: tuple[Finding, ...] = LEAK, decided: int = 0):
    return cause(by, decided, None, recorded, [series(one) for one in by])


def test_the_place_that_explains_the_growth_is_named() -> None:
    found = caused(in_process(holder("losses", GROWING, kind=MemoryKind.GRAPH)))
    assert found is not None
    (culprit,) = found.culprits
    assert (culprit.file, culprit.line, culprit.code) == ("/train.py", 9, "losses.append(loss)")
    assert culprit.holder == "list `losses`, local variable of main()"
    assert culprit.bytes_per_step == pytest.approx(5000)
    assert culprit.count_per_step == pytest.approx(1)
    assert culprit.since_step == 0
    assert culprit.share == pytest.approx(5000 / (5200 + 2 * 87))
    assert culprit.how is How.SOURCE
    assert found.kind is MemoryKind.GRAPH
    assert found.fix is Fix.DETACH


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ((MemoryKind.NATIVE_OR_TENSORS, None), (MemoryKind.GRAPH, None)),
        ((MemoryKind.NATIVE, 0.9), (MemoryKind.GRAPH, None)),
        ((MemoryKind.TENSORS, 0.9), (MemoryKind.TENSORS, 0.9)),
        ((MemoryKind.MAPPED, None), (MemoryKind.MAPPED, None)),
    ],
)
def test_names_tell_the_kind_that_the_metrics_leave_open(
    metrics: tuple[MemoryKind, float | None], said: tuple[MemoryKind, float | None]
) -> None:
    leaking = Leaking(kind=metrics[0], share=metrics[1])
    recorded = in_process(holder("losses", GROWING, kind=MemoryKind.GRAPH))
    found = leaking_by_names(leaking, cause(LEAK, 0, leaking, [recorded], SERIES))
    assert found is not None
    assert (found.kind, found.share) == said


def test_where_no_name_leads_to_the_growth_the_metrics_tell_the_kind() -> None:
    metrics = Leaking(kind=MemoryKind.NATIVE_OR_TENSORS, share=None)
    assert leaking_by_names(metrics, cause(LEAK, 0, metrics, [in_process()], SERIES)) == metrics
    assert leaking_by_names(metrics, None) == metrics
    assert leaking_by_names(None, None) is None


def test_items_of_the_size_of_the_model_are_said() -> None:
    recorded = in_process(holder("snapshots", GROWING, 5000.0))
    for model_bytes, said in ((4990, True), (4000, False), (0, False)):
        found = caused(replace(recorded, model_bytes=model_bytes))
        assert found is not None
        named = found.culprits[0].holder.endswith(", each item as large as the model")
        assert named is said


def test_memory_that_is_mapped_by_a_place_is_compared_with_pages() -> None:
    by = (
        finding("rss_bytes", 5200.0),
        finding("malloc_bytes", 90.0),
        finding("python_blocks", 1.0),
    )
    recorded = in_process(holder("pages", GROWING, kind=MemoryKind.NATIVE))
    leaking = Leaking(kind=MemoryKind.MAPPED, share=None)
    found = cause(by, 0, leaking, [recorded], [series(one) for one in by])
    assert found is not None
    assert found.kind is MemoryKind.MAPPED
    assert found.share_explained == pytest.approx(5000 / 5200)


@pytest.mark.parametrize(
    ("batch_bytes", "model_bytes", "said"),
    [(4990, 0, True), (5200, 0, True), (5300, 0, False), (4700, 0, False), (4990, 4990, False)],
)
def test_items_of_the_size_of_a_batch_are_said(
    batch_bytes: int, model_bytes: int, said: bool
) -> None:
    recorded = in_process(holder("cache", GROWING, 5000.0))
    found = caused(replace(recorded, batch_bytes=batch_bytes, model_bytes=model_bytes))
    assert found is not None
    assert ("each item as large as" in found.culprits[0].holder) is said


@pytest.mark.parametrize(
    ("sizes", "said"), [([4990], True), ([5100], False), ([4990, 4980], False), ([4000], False)]
)
def test_items_of_the_size_of_an_activation_are_said(sizes: list[int], said: bool) -> None:
    recorded = in_process(holder("features", GROWING, 5000.0, kind=MemoryKind.TENSORS))
    activations = tuple((size, ("Linear", "Tanh")) for size in sizes)
    found = caused(replace(recorded, activations=activations))
    assert found is not None
    what = ", each item as large as an activation: the output of Linear or Tanh"
    assert found.culprits[0].holder.endswith(what) is said


def test_a_line_at_which_the_place_was_seen_to_grow() -> None:
    seen = replace(LINE, line=7, hits=3)
    found = caused(in_process(holder("losses", GROWING, lines=(seen, LINE))))
    assert found is not None
    assert (found.culprits[0].line, found.culprits[0].how) == (7, How.WATCHED)


def test_only_the_report_of_a_leak_says_that_lines_were_watched() -> None:
    recorded = (replace(in_process(), watched_steps=45, watched_s=1.52), in_process())
    assert watching(Verdict.LEAK, recorded) == ("main: lines were watched for 45 steps (1.5 s)",)
    assert watching(Verdict.WARMUP, recorded) == ()


def native(*bytes_per_step: float) -> ProcessHolders:
    lines = (
        NativeLine(line=replace(LINE, line=number), bytes_per_step=size)
        for number, size in enumerate(bytes_per_step, 1)
    )
    return replace(in_process(), native=tuple(lines))


def test_lines_that_get_native_memory_are_named_where_no_name_leads_to_it() -> None:
    found = caused(native(150_000.0, 5000.0, 40.0))
    assert found is not None
    (culprit,) = found.culprits
    assert (culprit.line, culprit.how) == (2, How.ALLOCATED)
    assert culprit.bytes_per_s == pytest.approx(5000 / STEP_S)
    assert found.share_explained == pytest.approx(5000 / 5374)
    explained = caused(replace(native(5000.0), holders=(holder("losses", GROWING),)))
    assert explained is not None
    assert [one.how for one in explained.culprits] == [How.SOURCE]


@pytest.mark.parametrize(
    ("tensors", "kind"), [(0.0, MemoryKind.NATIVE), (1.0, MemoryKind.NATIVE_OR_TENSORS)]
)
def test_memory_that_a_line_gets_is_native_if_tensors_do_not_accumulate(
    tensors: float, kind: MemoryKind
) -> None:
    by = (*LEAK, finding("tensors", tensors))
    leaking = Leaking(kind=MemoryKind.NATIVE_OR_TENSORS, share=None)
    found = cause(by, 0, leaking, [native(5000.0)], [series(one) for one in by])
    assert found is not None
    assert found.kind is kind
    assert (
        found.culprits[0].holder
        == "native memory from `losses.append()` held by no name that was found"
    )


def test_objects_that_callbacks_keep() -> None:
    path = (Name(kind="registered", name="atexit", owner="atexit"),)
    held = holder("", GROWING, path=path, unit="objects", item_type="Writer", container="")
    found = caused(in_process(held))
    assert found is not None
    assert found.culprits[0].holder == "Writer objects that callbacks of `atexit` keep"
    assert found.fix is Fix.REMOVE_HANDLER


def test_the_state_of_an_optimizer_counts_for_the_groups_of_its_parameters() -> None:
    optimizer = Name(kind="local", name="optimizer", owner="main", file="/train.py")
    groups, state = (
        (optimizer, Name(kind="attribute", name=name, owner="Adam"))
        for name in ("param_groups", "state")
    )
    found = caused(
        in_process(
            holder("", GROWING, 200.0, path=groups),
            holder("", history(0, 1000, 2000, 3000, 4000), 2400.0, path=state, lines=()),
        )
    )
    assert found is not None
    (culprit,) = found.culprits
    assert culprit.line == 9
    assert culprit.holder.startswith("list `optimizer.param_groups`")
    assert culprit.bytes_per_step == pytest.approx(200 + 2 * 2400)
    assert found.fix is Fix.NEW_OPTIMIZER


def test_growth_that_was_judged_by_time_is_explained_by_growth_per_second() -> None:
    by_time = Axis(name="time_s", kind=AxisKind.SECONDS)
    growth = interval(5200.0 / STEP_S)
    leak = replace(finding("malloc_bytes", 5200.0), axis=by_time, growth_per_x=growth)
    found = caused(in_process(holder("losses", GROWING)), by=(leak,))
    assert found is not None
    assert found.share_explained == pytest.approx(5000 / 5200, rel=0.01)
    assert found.culprits[0].bytes_per_step == pytest.approx(5000)


def test_lines_that_get_less_or_more_than_what_grows_are_not_named_nor_two() -> None:
    for sizes in ((2000.0,), (20_000.0, 1000.0), (5000.0, 5100.0)):
        found = caused(native(*sizes))
        assert found is not None
        assert found.culprits == ()


def allocating(*lines: tuple[int, float, MemoryKind]) -> ProcessHolders:
    found = (
        AllocatedLine(line=replace(LINE, line=number), bytes_per_step=size, kind=kind)
        for number, size, kind in lines
    )
    return replace(in_process(), allocated=tuple(found))


def test_lines_that_allocate_what_stays_are_named_where_nothing_else_explains_it() -> None:
    tensors, native = MemoryKind.TENSORS, MemoryKind.NATIVE
    recorded = allocating((7, 3000.0, tensors), (8, 1000.0, tensors), (7, 500.0, native))
    found = caused(recorded)
    assert found is not None
    assert [(one.line, one.bytes_per_step) for one in found.culprits] == [(7, 3500), (8, 1000)]
    assert {one.how for one in found.culprits} == {How.ALLOCATED}
    assert found.culprits[0].holder == "tensors held by no name that was found"
    assert found.culprits[0].bytes_per_s == pytest.approx(3500 / STEP_S)
    assert found.share_explained == pytest.approx(4500 / 5374)
    assert found.kind is tensors
    graph = cause(LEAK, 0, Leaking(kind=MemoryKind.GRAPH, share=0.9), (recorded,), SERIES)
    assert graph is not None
    assert graph.culprits[0].holder == "autograd graphs held by no name that was found"
    named = caused(replace(recorded, holders=(holder("losses", GROWING),)))
    assert named is not None
    assert [one.how for one in named.culprits] == [How.SOURCE]


def test_a_place_without_a_line_gets_the_one_that_allocates_what_stays() -> None:
    recorded = allocating((7, 4500.0, MemoryKind.TENSORS))
    found = caused(replace(recorded, holders=(holder("losses", GROWING, lines=()),)))
    assert found is not None
    (culprit,) = found.culprits
    assert (culprit.line, culprit.how) == (7, How.ALLOCATED)
    assert "`losses`" in culprit.holder


@pytest.mark.parametrize(("size", "line"), [(4500.0, 7), (2600.0, LINE.line)])
def test_a_place_without_a_name_gets_the_line_that_allocates_half_of_what_stays(
    size: float, line: int
) -> None:
    """Tensors that a hook of their own keeps: the line that was found for them is a guess."""
    path = (Name(kind="unreached", name="Tensor", owner="torch"),)
    held = holder("", GROWING, path=path, unit="objects", item_type="Tensor", container="")
    recorded = allocating((7, size, MemoryKind.TENSORS), (8, 300.0, MemoryKind.NATIVE))
    found = caused(replace(recorded, holders=(held,)))
    assert found is not None
    assert [one.line for one in found.culprits] == [line]


def test_lines_that_allocate_more_than_what_grows_have_no_more_than_all_of_it() -> None:
    found = caused(allocating((7, 6000.0, MemoryKind.NATIVE), (8, 2000.0, MemoryKind.NATIVE)))
    assert found is not None
    assert [one.share for one in found.culprits] == [pytest.approx(0.75), pytest.approx(0.25)]
    assert sum(one.bytes_per_step or 0.0 for one in found.culprits) == pytest.approx(5374)


@pytest.mark.parametrize("size", [2000.0, 12_000.0])
def test_lines_that_allocate_less_or_far_more_than_what_grows_are_not_named(size: float) -> None:
    found = caused(allocating((7, size, MemoryKind.TENSORS)))
    assert found is not None
    assert found.culprits == ()


def test_places_are_ranked_by_their_share() -> None:
    small = holder("small", GROWING, 1000.0, lines=(replace(LINE, line=7),))
    large = holder("large", GROWING, 4000.0)
    found = caused(in_process(small, large))
    assert found is not None
    names = [culprit.holder.split("`")[1] for culprit in found.culprits]
    assert names == ["large", "small"]
    assert found.share_explained == pytest.approx(5000 / 5374)


def test_the_programs_own_class_is_named_before_a_librarys() -> None:
    path = (
        Name(kind="local", name="bus", owner="main", file="/train.py"),
        Name(kind="attribute", name="inbox", owner="MetricsBus", file="/train.py"),
        Name(kind="attribute", name="queue", owner="Queue"),
    )
    found = caused(in_process(holder("", GROWING, path=path, container="deque")))
    assert found is not None
    assert found.culprits[0].holder == (
        "deque `bus.inbox.queue`, attribute `inbox` of MetricsBus, held by local variable of "
        "main() `bus`"
    )


def test_long_ways_through_libraries_are_left_out() -> None:
    path = (
        Name(kind="local", name="trainer", owner="main", file="train.py"),
        *(Name(kind="attribute", name=f"_connector_{n}", owner="Connector") for n in range(5)),
        Name(kind="attribute", name="outputs", owner="Classifier", file="train.py"),
        Name(kind="attribute", name="queue", owner="Queue"),
    )
    found = caused(in_process(holder("outputs", GROWING, path=path, container="deque")))
    assert found is not None
    assert found.culprits[0].holder == (
        "deque `trainer...outputs.queue`, attribute `outputs` of Classifier, "
        "held by local variable of main() `trainer`"
    )


def test_modules_of_torch_are_written_as_attributes() -> None:
    path = (
        Name(kind="local", name="net", owner="main", file="train.py"),
        Name(kind="attribute", name="_modules", owner="Net", file="train.py"),
        Name(kind="key", name="layers"),
        Name(kind="attribute", name="_modules", owner="Sequential"),
        Name(kind="key", name="0"),
        Name(kind="attribute", name="_forward_hooks", owner="Linear"),
    )
    found = caused(in_process(holder("hooks", GROWING, path=path, container="OrderedDict")))
    assert found is not None
    assert found.culprits[0].holder == (
        "OrderedDict `net.layers[0]._forward_hooks`, attribute `layers` of Net, "
        "held by local variable of main() `net`"
    )


def test_places_that_one_line_adds_to_are_one_culprit() -> None:
    hooks = [holder(f"layer{i}", GROWING, 400.0) for i in range(12)]
    found = caused(in_process(*hooks))
    assert found is not None
    (culprit,) = found.culprits
    assert culprit.holder == "list `layer0`, local variable of main() and 11 more"
    assert culprit.bytes_per_step == pytest.approx(12 * 400)
    assert culprit.count_per_step == pytest.approx(12)
    assert culprit.share == pytest.approx(12 * 400 / 5374)


def test_places_that_hold_less_than_half_are_not_named() -> None:
    found = caused(in_process(holder("history", GROWING, 64.0), holder("log", GROWING, 2000.0)))
    assert found is not None
    assert found.culprits == ()
    assert found.fix is None
    assert found.share_explained == pytest.approx(2064 / 5374)


@pytest.mark.parametrize(
    "sizes",
    [
        history(0, 1900, 2000, 2000, 2000, 2000, 2000),  # a cache that is full
        history(500, 500, 500, 500),
        history(2000, 1500, 1000, 500),
    ],
)
def test_places_that_no_longer_grow_are_not_named(sizes: tuple[Size, ...]) -> None:
    found = caused(in_process(holder("cache", sizes)))
    assert found is not None
    assert found.culprits == ()


def test_nothing_is_named_without_a_leak() -> None:
    calm = (finding("malloc_bytes", 0.0), finding("python_blocks", 0.0))
    recorded = in_process(holder("losses", GROWING))
    assert caused(recorded, by=calm) is None
    assert caused() is None
    assert cause((), None, None, (recorded,), ()) is None


def test_resident_pages_do_not_dilute_the_share() -> None:
    by = (finding("rss_bytes", 250_000.0), *LEAK)
    found = caused(in_process(holder("losses", GROWING)), by=by)
    assert found is not None
    assert found.share_explained > 0.9


def test_only_the_process_that_leaks_is_asked() -> None:
    by = (finding("malloc_bytes", 5200.0, process="rank1"),)
    healthy = in_process(holder("metrics", GROWING), process="rank0")
    leaking = in_process(holder("losses", GROWING), process="rank1")
    found = caused(healthy, leaking, by=by)
    assert found is not None
    assert [culprit.process for culprit in found.culprits] == ["rank1"]


def test_a_worker_without_steps_is_placed_on_those_of_the_job() -> None:
    sizes = history(0, 500, 1000, 1500, 2000, with_steps=False)
    found = caused(in_process(holder("cache", sizes)))
    assert found is not None
    assert found.culprits[0].bytes_per_step == pytest.approx(5000)
    assert found.culprits[0].since_step == 0


def test_growth_from_before_the_steps_were_found_has_not_ended() -> None:
    """Steps are counted in the last tenth of the run; until then it grew as fast."""
    sizes = history(*range(0, 2001, 50), with_steps=False)
    began_s = 0.9 * STEPS * STEP_S
    late = [replace(one, x=one.x[:21], at_s=began_s + STEP_S * one.x[:21]) for one in SERIES]
    found = cause(LEAK, 0, None, [in_process(holder("losses", sizes))], late)
    assert found is not None
    assert [one.line for one in found.culprits] == [9]


def test_growth_that_began_later_has_its_step() -> None:
    found = caused(in_process(holder("losses", history(0, 0, 0, 1000, 2000), 2500.0)))
    assert found is not None
    assert found.culprits[0].since_step == 1000


def test_a_place_without_a_line_is_named_without_one() -> None:
    found = caused(in_process(holder("losses", GROWING, lines=())))
    assert found is not None
    assert (found.culprits[0].file, found.culprits[0].how) == (None, How.NAME)


@pytest.mark.parametrize(
    ("more", "fix"),
    [
        ({"container": "_lru_cache_wrapper"}, Fix.CACHE_SIZE),
        ({"container": "dict"}, Fix.BOUND_DICTIONARY),
        ({"container": "list"}, Fix.BOUND_SEQUENCE),
        ({"unit": "bytes", "container": ""}, Fix.AGGREGATE),
        ({"through": "view"}, Fix.COPY),
        ({"through": "traceback"}, Fix.NO_TRACEBACK),
        (
            {"kind": MemoryKind.GRAPH, "lines": (replace(LINE, function="Model.val_step"),)},
            Fix.NO_GRAD,
        ),
        ({"unit": "objects", "container": "", "is_chain": True}, Fix.UNLINK),
        (
            {
                "path": (
                    Name(kind="global", name="net"),
                    Name(kind="attribute", name="_forward_hooks", owner="Linear"),
                )
            },
            Fix.REMOVE_HOOK,
        ),
    ],
)
def test_the_fix_follows_from_what_holds_it(more: dict[str, object], fix: Fix) -> None:
    found = caused(in_process(holder("kept", GROWING, **more)))
    assert found is not None
    assert found.fix is fix


def test_the_metrics_decide_the_kind_where_they_can() -> None:
    recorded = (in_process(holder("rows", GROWING, kind=MemoryKind.NATIVE)),)
    kinds = {}
    for share in (0.9, None):
        known = Leaking(kind=MemoryKind.TENSORS, share=share)
        found = cause(LEAK, 0, known, recorded, [series(one) for one in LEAK])
        assert found is not None
        kinds[share] = found.kind
    assert kinds == {0.9: MemoryKind.TENSORS, None: MemoryKind.NATIVE}


def test_what_is_held_decides_the_kind_of_what_metrics_have_not_seen() -> None:
    recorded = (in_process(holder("rows", GROWING, kind=MemoryKind.TENSORS)),)
    rest = Leaking(kind=MemoryKind.NATIVE, share=0.9)
    found = cause(LEAK, 0, rest, recorded, [series(one) for one in LEAK])
    assert found is not None
    assert found.kind is MemoryKind.TENSORS


def test_what_no_place_explains_is_in_objects_that_do_not_say_how_much_memory_they_have() -> None:
    images = holder("images", GROWING, 100.0, hiding_per_unit=2.0, hiding_type="Core")
    found = caused(in_process(images))
    assert found is not None
    (culprit,) = found.culprits
    assert culprit.holder.endswith(
        "`images`, local variable of main(), with native memory of Core objects"
    )
    assert culprit.bytes_per_step == pytest.approx(5374)
    assert found.kind is MemoryKind.NATIVE
    losses = holder("losses", GROWING, 5000.0, lines=(replace(LINE, line=7),))
    both = caused(in_process(losses, images))
    assert both is not None
    assert [one.bytes_per_step for one in both.culprits] == [5000, pytest.approx(374)]


def test_of_two_lines_that_get_native_memory_the_one_that_gives_it_no_name_is_named() -> None:
    codes = ("row = (step, scores.tobytes())", 'self.table.execute("INSERT", row)')
    lines = tuple(
        NativeLine(line=replace(LINE, line=number, code=code), bytes_per_step=5000.0)
        for number, code in enumerate(codes, 1)
    )
    found = caused(replace(in_process(), native=lines))
    assert found is not None
    (culprit,) = found.culprits
    assert culprit.line == 2
    assert culprit.holder.startswith("native memory from `self.table.execute()` held by")


def test_what_was_found_without_a_name_counts_for_what_places_with_names_leave() -> None:
    path = (Name(kind="unreached", name="Tensor", owner="torch"),)
    loose = holder("", GROWING, 5000.0, path=path, unit="objects", container="", lines=())
    for named, shares in ((5374.0, [1.0]), (4000.0, [4000 / 5374, 1374 / 5374])):
        found = caused(in_process(loose, holder("tasks", GROWING, named)))
        assert found is not None
        assert [one.share for one in found.culprits] == pytest.approx(shares)
        assert found.culprits[0].holder.startswith("list `tasks`")


def test_calls_that_have_not_returned() -> None:
    path = (Name(kind="running", name="Loader.fill", owner="Loader.fill", file="train.py"),)
    found = caused(in_process(holder("", GROWING, 5374.0, path=path)))
    assert found is not None
    assert found.culprits[0].holder == "calls of `Loader.fill()` that have not returned"
    assert found.fix is Fix.END_CALLS


@pytest.mark.parametrize(("other", "is_named"), [(40.0, True), (9000.0, False)])
def test_a_line_that_gives_native_memory_a_name_is_not_named_if_some_is_freed(
    other: float, is_named: bool
) -> None:
    lines = (
        NativeLine(line=replace(LINE, line=1, code="out = net(x)"), bytes_per_step=5000.0),
        NativeLine(line=replace(LINE, line=2, code="draw(out)"), bytes_per_step=other),
    )
    found = caused(replace(in_process(), native=lines))
    assert found is not None
    assert [one.line for one in found.culprits] == [1] * is_named


def test_who_a_line_calls_probably_holds_what_it_gets() -> None:
    line = replace(LINE, function="Publisher.publish", receiver="self.socket")
    found = caused(replace(in_process(), native=(NativeLine(line=line, bytes_per_step=5000.0),)))
    assert found is not None
    assert found.culprits[0].holder == (
        "native memory from `losses.append()`, probably held by `self.socket` in "
        "Publisher.publish()"
    )
    assert found.fix is None  # it may be no memory that the program can free


@pytest.mark.parametrize(
    ("each", "is_estimated", "held"),
    [(9000.0, False, 5374), (4000.0, True, 5374), (4000.0, False, 4000), (3000.0, True, 3000)],
)
def test_places_hold_no_more_than_what_grows_and_estimates_may_be_too_low(
    each: float, is_estimated: bool, held: float
) -> None:
    found = caused(in_process(holder("rows", GROWING, each, is_estimated=is_estimated)))
    assert found is not None
    assert found.culprits[0].bytes_per_step == pytest.approx(held)


def hiding(*makers: SourceLine) -> Holder:
    return holder(
        "made", GROWING, 100.0, hiding_per_unit=1.0, hiding_type="Generator", makers=makers
    )


def test_objects_in_c_hold_no_more_than_the_lines_that_make_them_get() -> None:
    """Line 1 gets most of what no place explains, line 2 makes the objects that a place holds."""
    maker = replace(LINE, line=2)
    recorded = replace(native(5000.0, 250.0), holders=(hiding(maker),))
    found = caused(recorded)
    assert found is not None
    assert [(one.line, one.how) for one in found.culprits] == [
        (1, How.ALLOCATED),
        (9, How.SOURCE),
    ]
    shares = [one.share for one in found.culprits]
    assert shares == pytest.approx([5000 / 5374, 350 / 5374])
    assert found.fix is Fix.RELEASE
    assert all(one.is_certain for one in found.culprits)


def test_objects_in_c_hold_what_the_lines_that_make_them_get() -> None:
    found = caused(replace(native(5000.0, 40.0), holders=(hiding(replace(LINE, line=1)),)))
    assert found is not None
    (culprit,) = found.culprits
    assert culprit.holder.endswith("with native memory of Generator objects")
    assert culprit.bytes_per_step == pytest.approx(5100)
    assert culprit.is_certain


def test_what_objects_in_c_hold_is_not_certain_where_no_line_was_measured() -> None:
    found = caused(in_process(hiding()))
    assert found is not None
    assert [one.is_certain for one in found.culprits] == [False]


def test_views_that_no_name_leads_to_are_of_objects_in_c_that_a_place_holds() -> None:
    views = holder(
        "memoryview",
        GROWING,
        4000.0,
        path=(Name(kind="unreached", name="memoryview", owner="_cyutility", file=""),),
        unit="objects",
    )
    found = caused(in_process(hiding(), views))
    assert found is not None
    (culprit,) = found.culprits
    assert culprit.holder.startswith("list `made`")
    assert culprit.share == pytest.approx(1.0)


def test_objects_in_c_may_have_pages_of_an_allocator_of_their_own() -> None:
    pages = (finding("rss_bytes", 5200.0), finding("malloc_bytes", 0.0))
    mapped = Leaking(kind=MemoryKind.MAPPED, share=1.0)
    found = cause(pages, 0, mapped, [in_process(hiding())], [series(one) for one in pages])
    assert found is not None
    (culprit,) = found.culprits
    assert culprit.bytes_per_step == pytest.approx(5200)
    assert not culprit.is_certain


def test_a_line_that_gets_what_the_places_leave_is_named_beside_them() -> None:
    recorded = replace(native(4400.0), holders=(holder("replay", GROWING, 800.0),))
    found = caused(recorded)
    assert found is not None
    assert [one.line for one in found.culprits] == [1, 9]
    assert found.share_explained == pytest.approx(5200 / 5374)


def job(*parts: tuple[str, float]) -> WholeGrowth:
    whole = sum(size for _, size in parts)
    return WholeGrowth(
        growth_per_x=interval(whole),
        growth_per_s=None,
        parts=tuple(
            GrowthPart(
                process=process,
                metric="malloc_bytes",
                growth_per_x=interval(size),
                share=size / whole,
            )
            for process, size in parts
        ),
    )


def test_shares_are_of_the_growth_of_the_job() -> None:
    by = (
        finding("rss_bytes", 7500.0, "tree"),
        finding("malloc_bytes", 5500.0, "a"),
        finding("malloc_bytes", 2000.0, "b"),
    )
    first = in_process(holder("rows_a", GROWING, 3000.0), process="a")
    line = replace(LINE, line=7)
    second = in_process(holder("rows_b", GROWING, 2000.0, lines=(line,)), process="b")
    growth = job(("a", 5500.0), ("b", 2000.0))
    found = cause(by, 0, None, (second, first), [series(one) for one in by], growth)
    assert found is not None
    assert [one.process for one in found.culprits] == ["a", "b"]
    shares = [one.share for one in found.culprits]
    assert shares == pytest.approx([3000 / 7500, 2000 / 7500], rel=0.01)
    assert found.share_explained == pytest.approx(5000 / 7500, rel=0.01)
    alone = cause(by, 0, None, (second,), [series(one) for one in by], growth)
    assert alone is not None
    assert alone.culprits == ()


def test_a_line_in_several_processes_is_one_culprit() -> None:
    names = ("worker 0", "worker 1")
    by = (
        finding("rss_bytes", 10_000.0, "tree"),
        *(finding("malloc_bytes", 5000.0, name) for name in names),
    )
    recorded = [in_process(holder("cache", GROWING, 5000.0), process=name) for name in names]
    growth = job(*((name, 5000.0) for name in names))
    found = cause(by, 0, None, recorded, [series(one) for one in by], growth)
    assert found is not None
    (culprit,) = found.culprits
    assert culprit.processes == names
    assert culprit.holder == "list `cache`, local variable of main()"
    assert culprit.share == pytest.approx(1.0, rel=0.01)
    assert culprit.bytes_per_step == pytest.approx(10_000)


@pytest.mark.parametrize("with_steps", [True, False])
def test_growth_that_began_between_two_readings_is_traced_back(with_steps: bool) -> None:
    sizes = history(0, 0, 250, 1250, 2250, with_steps=with_steps)  # 2 items per step
    found = caused(in_process(holder("late", sizes, 2500.0)))
    assert found is not None
    assert found.culprits[0].since_step == 875


@pytest.mark.parametrize(("phase", "fix"), [("eval", Fix.NO_GRAD), ("train", Fix.DETACH)])
def test_graphs_that_evaluation_keeps_need_none(phase: str, fix: Fix) -> None:
    grown = replace(diagnoses.leak().phases[0], phase=phase, share=0.9, p_value=1e-6)
    malloc = replace(LEAK[0], phases=(grown,))
    recorded = in_process(holder("outputs", GROWING, kind=MemoryKind.GRAPH))
    found = caused(recorded, by=(malloc, LEAK[1]))
    assert found is not None
    assert found.fix is fix


def test_a_chain_that_grew_before_the_first_step_that_is_known_has_grown_from_the_start() -> None:
    sizes = history(2, 2, 3, 4, 5)
    found = caused(in_process(holder("links", sizes, 2.5e6, unit="objects", is_chain=True)))
    assert found is not None
    assert found.culprits[0].since_step == 0


def test_the_call_of_a_function_in_one_line_is_that_in_its_body() -> None:
    line = replace(LINE, code="def __init__(self, n: int) -> None: self.data = np.ones(n)")
    found = caused(replace(in_process(), native=(NativeLine(line=line, bytes_per_step=5000.0),)))
    assert found is not None
    assert found.culprits[0].holder.startswith("native memory from `np.ones()`")


def test_a_line_that_makes_reference_cycles_is_not_freed_by_a_call() -> None:
    metrics = Leaking(kind=MemoryKind.CYCLES, share=0.9)
    found = cause(LEAK, 0, metrics, [native(5000.0)], SERIES)
    assert found is not None
    assert found.fix is Fix.BREAK_CYCLE


def test_workers_that_are_started_anew_count_once() -> None:
    epochs = [
        replace(in_process(holder("cache", GROWING, 2600.0)), pid=pid, last_s=float(pid))
        for pid in (10, 20)
    ]
    found = caused(*epochs, replace(in_process(), pid=30, last_s=30.0))
    assert found is not None
    assert found.share_explained == pytest.approx(2600 / 5374)


def test_positions_that_are_not_exact_do_not_hide_growth_from_the_start() -> None:
    found = caused(in_process(holder("cache", history(40, 440, 1000, 1500, 2000))))
    assert found is not None
    assert found.culprits[0].since_step == 0


def test_programs_that_jax_compiles_for_each_shape() -> None:
    """What a program has in C is what nothing else explains."""
    path = (
        Name(kind="global", name="fit", owner="__main__", file="/train.py"),
        Name(kind="cache", name="fit"),
    )
    more = {"path": path, "container": "PjitFunction", "hiding_type": "executable"}
    found = caused(in_process(holder("fit", GROWING, 1.0, hiding_per_unit=1.0, **more)))
    assert found is not None
    (culprit,) = found.culprits
    assert culprit.holder == (
        "programs that JAX compiled for `fit`, held by global of __main__ `fit`, with native "
        "memory of executable objects"
    )
    assert culprit.share > 0.9
    assert found.fix is Fix.FIXED_SHAPES
