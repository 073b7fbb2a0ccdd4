"""Diagnoses made by hand, from runs that are known: what the renderers' tests show."""

from __future__ import annotations

from dataclasses import replace

from memdiag.values.findings import (
    Diagnosis,
    Evidence,
    EvidenceKind,
    Failure,
    Finding,
    Forecast,
    Interval,
    KnownSize,
    LimitHit,
    NeedMore,
    PhaseGrowth,
    Plateau,
    RecordingFinding,
    Segment,
    SizeMatch,
)
from memdiag.values.measurements import (
    Axis,
    AxisKind,
    Cause,
    Ending,
    Missing,
    Role,
    Unavailable,
    Unit,
)
from memdiag.values.verdict import Argument, Reason, Side, Verdict

MB = 1e6
MODEL_COPIES = SizeMatch(multiple=2.97, what=KnownSize.MODEL, size_bytes=496_000_000)
STEP = Axis(name="step", kind=AxisKind.STEP)
# What a hostile file, phase or process name may hold.
HOSTILE = "a\x1b[31mred\x1b]0;title\x07[bold]x[/bold]\r\n\u202egnp.exe\u2066\x9b2J\udcff日本語"


def interval(value: float, half: float = 0.0) -> Interval:
    return Interval(value=value, low=value - half, high=value + half)


def segment(start: tuple[float, float], end: tuple[float, float], samples: int) -> Segment:
    slope = (end[1] - start[1]) / (end[0] - start[0])
    return Segment(
        start_x=start[0],
        end_x=end[0],
        start_value=start[1],
        end_value=end[1],
        samples=samples,
        slope_per_x=interval(slope, abs(slope) / 20),
    )


def series(trace: list[tuple[float, float]], verdict: Verdict, reason: Reason) -> Finding:
    """A finding with one segment through the ends of its trace and nothing else known."""
    values = [value for _, value in trace]
    whole = segment(trace[0], trace[-1], len(trace))
    return Finding(
        metric="rss_bytes",
        column="rss_bytes",
        process="",
        role=Role.RESIDENT,
        unit=Unit.BYTES,
        axis=STEP,
        verdict=verdict,
        confidence=0.97,
        reason=reason,
        samples=len(trace),
        first_x=trace[0][0],
        last_x=trace[-1][0],
        start_value=values[0],
        latest_value=values[-1],
        peak_value=max(values),
        segments=(whole,),
        growth_per_x=whole.slope_per_x,
        growth_per_s=None,
        plateau=None,
        onset_x=None,
        forecasts=(),
        limit_hits=(),
        need_more=None,
        phases=(),
        trace=tuple(trace),
    )


def recording(source: str, *found: Finding, decided_by: int | None = 0) -> RecordingFinding:
    deciding = None if decided_by is None else found[decided_by]
    return RecordingFinding(
        source=source,
        verdict=Verdict.INCONCLUSIVE if deciding is None else deciding.verdict,
        confidence=0.0 if deciding is None else deciding.confidence,
        series=found,
        decided_by=decided_by,
    )


def of(*recordings: RecordingFinding, failures: tuple[Failure, ...] = ()) -> Diagnosis:
    return Diagnosis(recordings=recordings, failures=failures)


LEAK_TRAIL = (
    Argument(
        check="staircase",
        side=Side.NOT_CONSIDERED,
        text="no upward steps with level stretches between them were found",
        reason=Reason.UNCERTAIN_TREND,
        verdict=Verdict.INCONCLUSIVE,
    ),
    Argument(
        check="last_regime",
        side=Side.FOR_LEAK,
        text="it grew by equal amounts for {length_x}; leaks do that, few warm-ups do",
        numbers={
            "length_x": 34.0,
            "growth_rate": 291.2 * MB,
            "growth_p": 4.3e-13,
            "longer_share": 0.7,
        },
        reason=Reason.REGULAR_GROWTH,
        verdict=Verdict.LEAK,
        window="last_regime",
        is_decisive=True,
    ),
)


def leak() -> Finding:
    """VRAM that grows in the Predict and Correct phases of a hybrid trainer."""
    steps = (0, 10, 15, 20, 25, 30, 35, 40, 49)
    megabytes = (3864, 4184, 4184, 5624, 7096, 8536, 10008, 11480, 14136)
    trace = [(float(x), y * MB) for x, y in zip(steps, megabytes, strict=True)]
    phases = tuple(
        PhaseGrowth(
            phase=name,
            events=3,
            growing_events=3,
            growth_per_event=interval(growth * MB, 20 * MB),
            spread=spread,
            share=share,
            p_value=0.004,
            match=match,
        )
        for name, growth, spread, share, match in (
            ("Predict", 1472, 0.0, 0.49, MODEL_COPIES),
            ("Correct", 1450, 0.011, 0.51, None),
        )
    )
    hit = LimitHit(limit="GPU 0", limit_bytes=16_000_000_000, at_x=interval(56.2, 1.4), in_s=40.0)
    return replace(
        series(trace, Verdict.LEAK, Reason.REGULAR_GROWTH),
        metric="vram_bytes",
        column="vram_mb",
        role=Role.DEVICE,
        confidence=0.996,
        segments=(segment(trace[0], trace[2], 3), segment(trace[2], trace[-1], 7)),
        growth_per_x=interval(291.2 * MB, 11.6 * MB),
        growth_per_s=interval(48.5 * MB, 2.0 * MB),
        onset_x=Interval(value=15, low=13, high=18),
        forecasts=(Forecast(at_x=100, value=interval(28.98e9, 0.6e9)),),
        limit_hits=(hit,),
        phases=phases,
        trail=LEAK_TRAIL,
    )


def tensors(level: float, last_x: float) -> Finding:
    trace = [(0.0, level), (last_x, level)]
    return replace(
        series(trace, Verdict.STABLE, Reason.FLAT),
        metric="tensors",
        column="tensors",
        role=Role.TENSORS,
        unit=Unit.COUNT,
        growth_per_x=interval(0.0, 0.02),
    )


def leak_with_phases() -> Diagnosis:
    found = recording("hybrid.csv", leak(), tensors(7070, 49))
    evidence = Evidence(kind=EvidenceKind.TENSORS_FLAT, subject="vram_bytes", against="tensors")
    return of(replace(found, evidence=(evidence,)))


_VISION = [5434, 7017, 8721, 10375, 12000, 13757, 15559, 17412, 17658, 17693, 17694, 17694]
_VISION += [17437, 17437, 17437, 17378, 17378, 17229, 17229, 17051, 17052, 17041, 17041, 17041]


def warmup() -> Diagnosis:
    """RSS that rises for 90 steps and then stays, beside a steady number of tensors."""
    trace = [(10.0 * (at + 1), y * MB) for at, y in enumerate(_VISION)]
    found = replace(
        series(trace, Verdict.WARMUP, Reason.PLATEAU),
        segments=(segment(trace[0], trace[8], 9), segment(trace[8], trace[-1], 16)),
        growth_per_x=interval(-4.4 * MB, 0.9 * MB),
        plateau=Plateau(
            since_x=Interval(value=90, low=80, high=100),
            low_value=17041 * MB,
            high_value=17694 * MB,
            lasted_x=150,
        ),
        forecasts=(Forecast(at_x=10_000, value=interval(17.4e9, 0.4e9)),),
    )
    kept = Evidence(kind=EvidenceKind.TENSORS_FLAT, subject="rss_bytes", against="tensors")
    whole = recording("vision-run-2.csv", found, tensors(7070, 240))
    return of(replace(whole, evidence=(kept,)))


def stable() -> Diagnosis:
    trace = [(float(at), (4184 + (at * 7) % 3) * MB) for at in range(50)]
    flat = replace(
        series(trace, Verdict.STABLE, Reason.FLAT),
        metric="vram_bytes",
        role=Role.DEVICE,
        growth_per_x=interval(0.0, 30_000.0),
    )
    return of(recording("baseline.csv", flat))


def inconclusive() -> Diagnosis:
    trace = [(10.0 * (at + 1), y * MB) for at, y in enumerate(_VISION[:7])]
    climbing = replace(
        series(trace, Verdict.INCONCLUSIVE, Reason.STILL_CLIMBING),
        confidence=0.6,
        growth_per_x=interval(169.0 * MB, 3.0 * MB),
        need_more=NeedMore(more_x=58, more_s=110, why="longer than warm-ups go on growing"),
    )
    return of(recording("vision-run-1.csv", climbing, tensors(7070, 70)))


def leak_over_time() -> Diagnosis:
    """A watched process without steps, a leak by the minute, killed in the end."""
    trace = [(12.0 * at, (900 + 0.31 * at + (at % 7) * 1.3) * MB) for at in range(300)]
    found = replace(
        series(trace, Verdict.LEAK, Reason.OUTLASTS_WARMUP),
        axis=Axis(name="at_s", kind=AxisKind.SECONDS),
        process="tree",
        growth_per_x=interval(25_800.0, 700.0),
        growth_per_s=interval(25_800.0, 700.0),
        onset_x=interval(60.0, 20.0),
        limit_hits=(
            LimitHit(
                limit="cgroup memory.max",
                limit_bytes=2_000_000_000,
                at_x=Interval(value=43_200, low=40_000, high=float("inf")),
                in_s=39_600.0,
            ),
        ),
    )
    missing = (
        Missing(
            metric="tensors",
            process="main",
            why=Unavailable(
                reason="the process was not started under memdiag",
                remedy="start it with memdiag run to count tensors",
            ),
        ),
    )
    whole = replace(
        recording("memdiag-4711.csv", found),
        missing=missing,
        ending=Ending(signal=9, why="killed by the kernel's OOM killer", cause=Cause.OOM_KILLER),
        notes=("3 of 300 samples were late by more than 0.1 s",),
    )
    return of(whole)


def many_series() -> Diagnosis:
    """One worker of 32 leaks."""
    calm = [
        replace(
            series([(0.0, (300 + at) * MB), (500.0, (301 + at) * MB)], Verdict.STABLE, Reason.FLAT),
            process=f"worker {at}",
            growth_per_x=interval(0.0, 900.0),
        )
        for at in range(31)
    ]
    trace = [(float(at), 300 * MB + at * 5120.0 * 100) for at in range(0, 501, 5)]
    guilty = replace(
        series(trace, Verdict.LEAK, Reason.OUTLASTS_WARMUP),
        process="worker 17 of the validation loader",
        onset_x=interval(0.0),
    )
    found = recording("loader.csv", *calm[:12], guilty, *calm[12:], decided_by=12)
    alone = Evidence(kind=EvidenceKind.ONE_PROCESS, subject=f"{guilty.process} rss_bytes")
    return of(replace(found, evidence=(alone,)))


def hostile() -> Diagnosis:
    """Every text that comes from outside holds escapes, markup, newlines and overrides."""
    bad = replace(
        leak(),
        metric=HOSTILE + "_bytes",
        column=HOSTILE,
        process=HOSTILE,
        axis=Axis(name=HOSTILE, kind=AxisKind.INDEX),
        phases=(replace(leak().phases[0], phase=HOSTILE),),
        limit_hits=(replace(leak().limit_hits[0], limit=HOSTILE),),
    )
    doubt = replace(
        series([(0.0, 1e9), (9.0, 2e9)], Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES),
        need_more=NeedMore(more_x=None, more_s=None, why=HOSTILE),
    )
    why = Unavailable(reason=HOSTILE, remedy=HOSTILE)
    whole = replace(
        recording(HOSTILE, bad),
        evidence=tuple(
            Evidence(kind=kind, subject=f"{HOSTILE} {HOSTILE}", against=HOSTILE)
            for kind in EvidenceKind
        ),
        notes=(HOSTILE,),
        missing=(Missing(metric=HOSTILE, process=HOSTILE, why=why),),
        ending=Ending(code=1, why=HOSTILE),
    )
    failure = Failure(source=HOSTILE, message=HOSTILE, remedy=HOSTILE)
    return of(whole, recording(HOSTILE, doubt), failures=(failure,))


def failure() -> Diagnosis:
    return of(
        failures=(
            Failure(
                source="runs/empty.csv",
                message="runs/empty.csv: line 1: no column holds numbers that look like memory",
                remedy="name the column with --metric NAME=UNIT, for example --metric used=MB",
            ),
        )
    )


def nothing_measured() -> Diagnosis:
    whole = replace(
        recording("memdiag-1.csv", decided_by=None), ending=Ending(code=0, why="ended at once")
    )
    return of(whole)


def many_recordings() -> Diagnosis:
    sources = (warmup(), stable(), leak_with_phases(), inconclusive(), stable(), leak_over_time())
    renamed = [
        replace(
            diagnosis.recordings[0], source=f"runs/2026-02-0{at}/{diagnosis.recordings[0].source}"
        )
        for at, diagnosis in enumerate(sources)
    ]
    return of(*renamed, failures=failure().failures)


SCREENS = {
    "leak": leak_with_phases,
    "warmup": warmup,
    "stable": stable,
    "inconclusive": inconclusive,
    "leak_over_time": leak_over_time,
    "many_series": many_series,
    "many_recordings": many_recordings,
    "hostile": hostile,
    "failure": failure,
    "nothing_measured": nothing_measured,
}
