"""What was in memory, and what freeing it returned; hostile names cannot act on a terminal."""

from __future__ import annotations

import json
from dataclasses import replace

from jsonschema import Draft202012Validator
from report import diagnoses
from report.diagnoses import HOSTILE

from memdiag.report.formats import json_documents, markdown, terminal
from memdiag.report.sections import in_memory, interventions
from memdiag.report.text.screen import Screen
from memdiag.values.findings import (
    Advice,
    CensusFinding,
    Diagnosis,
    Freed,
    GrownPlace,
    GrowthCause,
    InMemory,
    InterventionFinding,
    ObjectType,
    RecordingFinding,
)
from memdiag.values.measurements import Cause, Ending
from memdiag.values.verdict import Reason, Verdict

SCREEN = Screen(width=80)
GROUP = InMemory(
    name="outs[]['q']",
    holder="`outs[]['q']`, held by local variable of main() `outs`",
    inside="",
    type="Tensor",
    shape=(256, 64),
    dtype="float32",
    device="cuda:0",
    count=3366,
    size_bytes=221_000_000,
    has_graph=True,
    grown_bytes=200_000_000,
)
CENSUS = CensusFinding(
    process="main",
    why="out_of_memory",
    at_s=26.0,
    step=3366,
    since_step=124,
    since_s=2.0,
    tensors=13469,
    tensor_bytes=2_210_000_000,
    groups=(GROUP, replace(GROUP, name="", holder="", inside="Node", device="cpu", grown_bytes=0)),
    types=(ObjectType(type="dict", count=9, size_bytes=900, grown_count=1, grown_bytes=-100),),
    allocators={"vram_allocated_bytes": 5_000_000_000},
    notes=("there are too many Python objects to count them",),
)
PLACE = GrownPlace(
    holder="list `outs`, local variable of main()",
    process="main",
    size=3366,
    unit="items",
    grown_bytes=428_000_000,
    since_step=124,
    file="/home/me/train.py",
    line=14,
    code="outs.append(y)",
    function="main",
)
COLLECTED = InterventionFinding(
    process="main",
    action="gc_collect",
    advice=Advice.CYCLES,
    times=(
        Freed(
            at_s=2.0,
            step=100,
            took_s=0.1,
            returned_bytes=6_600_000,
            returned_device_bytes=None,
            before={"rss_bytes": 9},
            after={"rss_bytes": 8},
        ),
    ),
    returned_bytes=6_600_000,
    returned_device_bytes=None,
    returned_per_step=66_000.0,
    took_s=0.1,
    step_s=0.01,
)
FOUND = diagnoses.recording(
    "a.csv", diagnoses.series([(0, 0), (9, 9)], Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES)
)
CRASHED = replace(
    FOUND,
    ending=Ending(code=1, cause=Cause.HOST_MEMORY),
    grown=(PLACE,),
    census=(CENSUS,),
)
FREED = replace(
    FOUND,
    cause=GrowthCause(
        kind=None, share_explained=None, culprits=(), fix=None, interventions=(COLLECTED,)
    ),
)


def whole(found: RecordingFinding, width: int = 80) -> str:
    shown = terminal.render(Diagnosis(recordings=(found,)), width=width)
    return "\n".join(line.plain for line in shown.renderables)  # type: ignore[union-attr]


def test_crash_names_what_grew_most_before_all_tables() -> None:
    text = whole(CRASHED)
    assert (
        " grew train.py:14: outs.append(y) - grew by 428 MB to 3,366 items since step 124: "
        "list `outs`, local variable of main()." in " ".join(text.split())
    )
    assert text.index(" grew ") < text.index(" last ") < text.index("In memory")


def test_places_that_ended_growing_are_no_suspects_of_a_leak() -> None:
    (place,) = CRASHED.grown
    ended = replace(CRASHED, grown=(replace(place, still_grows=False),))
    assert "since step 124, but not at the end: list `outs`" in " ".join(whole(ended).split())
    assert "outs.append(y)" not in whole(replace(ended, verdict=Verdict.LEAK))


def test_groups_types_and_notes_of_a_census() -> None:
    title, *lines = [line.plain.strip() for line in in_memory.lines(CRASHED, Screen(width=100))]
    assert title == (
        "In memory when an allocation failed, at step 3,366: 13,469 tensors of 2.21 GB, "
        "VRAM allocated"
    )
    assert [" ".join(line.split()) for line in lines] == [
        "5.00 GB.",
        "size growth number tensors and arrays held by",
        "221 MB +200 MB 3,366 float32 [256, 64] on cuda:0, with graph outs[]['q']",
        "221 MB 0 B 3,366 float32 [256, 64], with graph Node without a name",
        "size growth number objects of type",
        "900 B -100 B 9 dict",
        "The growth is that since the census at step 124.",
        "There are too many Python objects to count them.",
    ]


def test_census_fits_a_narrow_terminal() -> None:
    for width in (40, 60, 80):
        assert max(len(line) for line in whole(CRASHED, width).splitlines()[:-1]) <= width


def test_interventions_with_their_cost_every_n_steps() -> None:
    lines = [line.plain.strip() for line in interventions.lines(FREED, Screen(width=80))]
    assert " ".join(lines[:3]) == (
        "gc.collect(): 1 call returned 6.60 MB each and took 100 ms: objects in reference cycles "
        "gather between calls: break the cycles (weakref, del), or call it every N steps as "
        "below. Every 1,000 steps it takes 1% of the time."
    )
    assert [" ".join(line.split()) for line in lines[3:]] == [
        "if called every 1 step 10 steps 100 steps 1,000 steps",
        "gc.collect(), time 91% 50% 9.1% 0.99%",
        "memory between calls 66.0 KB 660 KB 6.60 MB 66.0 MB",
    ]
    assert "Cause" not in whole(FREED)


def test_cause_that_no_name_leads_to_is_cycles_if_a_collection_returns_it() -> None:
    cause = replace(FREED.cause, share_explained=0.1)  # type: ignore[type-var]
    leak = diagnoses.recording(
        "a.csv", diagnoses.series([(0, 0), (9, 9)], Verdict.LEAK, Reason.OUTLASTS_WARMUP)
    )
    text = " ".join(whole(replace(leak, cause=cause)).split())
    assert "cause no name in the program leads to most of what grows, and gc.collect()" in text


def test_useless_intervention_has_no_table() -> None:
    useless = replace(COLLECTED, advice=Advice.USELESS, returned_bytes=0)
    cause = GrowthCause(
        kind=None, share_explained=None, culprits=(), fix=None, interventions=(useless,)
    )
    text = " ".join(whole(replace(FOUND, cause=cause)).split())
    assert "gc.collect(): 1 call returned 0 B each and took 100 ms: not worth it" in text
    assert "if called every" not in text


def test_every_advice_has_its_words() -> None:
    texts = {
        advice: interventions.sentence(replace(COLLECTED, advice=advice), SCREEN)
        for advice in Advice
    }
    assert len(set(texts.values())) == len(Advice)


def test_document_with_censuses_and_interventions_is_valid() -> None:
    found = replace(CRASHED, cause=FREED.cause)
    values = json_documents.diagnosis(Diagnosis(recordings=(found,)), 3)
    Draft202012Validator(json.loads(json_documents.schema_text("diagnosis"))).validate(values)
    (recording,) = values["recordings"]
    assert recording["census"][0]["groups"][0]["name"] == "outs[]['q']"
    assert recording["grown"][0]["grown_bytes"] == 428_000_000
    (one,) = recording["cause"]["interventions"]
    assert (one["advice"], one["times"][0]["step"]) == ("cycles", 100)


def test_markdown_has_the_same() -> None:
    text = markdown.document(Diagnosis(recordings=(replace(CRASHED, cause=FREED.cause),)))
    assert "**Grew most**\n\n- train.py:14: outs.append\\(y\\)" in text
    assert "| 221 MB | +200 MB | 3,366 | float32" in text
    assert "**Interventions**\n\n- `gc.collect()`: 1 call returned" in text


def test_hostile_names_cannot_act_on_a_terminal_or_on_markdown() -> None:
    hostile = replace(
        CENSUS,
        process=HOSTILE,
        groups=(
            replace(GROUP, name=HOSTILE, holder=HOSTILE, dtype=HOSTILE, device=HOSTILE),
            replace(GROUP, name="", inside=HOSTILE),
        ),
        types=(replace(CENSUS.types[0], type=HOSTILE),),
        notes=(HOSTILE,),
    )
    place = replace(PLACE, holder=HOSTILE, process=HOSTILE, file=HOSTILE, code=HOSTILE)
    freed = replace(COLLECTED, process=HOSTILE)
    cause = GrowthCause(
        kind=None, share_explained=None, culprits=(), fix=None, interventions=(freed,)
    )
    found = replace(CRASHED, census=(hostile,), grown=(place,), cause=cause)
    for text in (whole(found), markdown.document(Diagnosis(recordings=(found,)))):
        assert "\x1b" not in text
        assert "\u202e" not in text
