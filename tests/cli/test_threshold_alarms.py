"""`--warn-at`, `--critical-at` and `--gpu-limit`: how a crossing is reported and recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import MEMDIAG, PATIENCE_S

from memdiag.analysis.live.sequential import LimitAhead
from memdiag.cli.measurement.threshold_alarms import Alarms
from memdiag.cli.options.gate import GateOptions, settle
from memdiag.errors import UsageError
from memdiag.report.sections import threshold_events
from memdiag.report.text.screen import Screen
from memdiag.values.measurements import Limit, Mark, MarkLevel, Role, Sample
from memdiag.values.thresholds import Threshold, parse_threshold

GB = 10**9
HOST = frozenset({Role.RESIDENT})
DEVICE = frozenset({Role.DEVICE, Role.DEVICE_RESERVED})
CONTAINER = Limit(name="cgroup memory.max", value_bytes=10 * GB, roles=HOST)
MACHINE = Limit(name="host RAM", value_bytes=64 * GB, roles=HOST)
ADDRESSES = Limit(name="RLIMIT_AS", value_bytes=4 * GB, roles=HOST, per_process=True)
CARD = Limit(name="GPU 0", value_bytes=24 * GB, roles=DEVICE)


def warn(text: str) -> Threshold:
    return parse_threshold(MarkLevel.WARNING, text, given_as="--warn-at")


def sample(process: str = "tree", at_s: float = 1.0, **readings: float) -> Sample:
    return Sample(at_s=at_s, pid=7, process=process, readings=readings, step=12, phase="train")


def passed(found: list[Mark]) -> list[tuple[str, str, int, str]]:
    return [(m.metric, m.process, m.threshold_bytes, m.limit) for m in found]


def test_a_percentage_is_of_the_tightest_limit_that_applies() -> None:
    alarms = Alarms([warn("80%")], lambda: [MACHINE, CONTAINER, ADDRESSES, CARD])
    assert alarms.see([sample(rss_bytes=7.9e9)]) == []
    found = alarms.see([sample(rss_bytes=8.1e9)])
    assert passed(found) == [("rss_bytes", "tree", 8 * GB, "cgroup memory.max")]
    assert (found[0].value_bytes, found[0].step, found[0].phase) == (8_100_000_000, 12, "train")


def test_a_resource_limit_is_held_against_each_process_and_not_against_their_sum() -> None:
    alarms = Alarms([warn("50%")], lambda: [ADDRESSES])
    assert alarms.see([sample(rss_bytes=9e9), sample("rank0", rss_bytes=1e9)]) == []
    found = alarms.see([sample("rank1", rss_bytes=2.5e9)])
    assert passed(found) == [("rss_bytes", "rank1", 2 * GB, "RLIMIT_AS")]


def test_threshold_is_reported_once_for_each_kind_of_memory() -> None:
    alarms = Alarms([warn("2GB")], list)
    assert len(alarms.see([sample(rss_bytes=3e9)])) == 1
    assert alarms.see([sample(rss_bytes=9e9)]) == []
    assert passed(alarms.see([sample(vram_bytes=5e9)])) == [("vram_bytes", "tree", 2 * GB, "")]


def test_threshold_is_reported_again_only_after_it_was_left_by_5_percent() -> None:
    alarms = Alarms([warn("2GB")], list)
    assert len(alarms.see([sample(rss_bytes=2.0e9)])) == 1
    assert alarms.levels == {MarkLevel.WARNING}
    assert alarms.see([sample(rss_bytes=1.91e9)]) == []
    assert alarms.levels == {MarkLevel.WARNING}
    assert alarms.see([sample(rss_bytes=2.1e9)]) == []
    assert alarms.see([sample(rss_bytes=1.89e9)]) == []
    assert alarms.levels == set()
    assert len(alarms.see([sample(rss_bytes=2.1e9)])) == 1


def test_threshold_is_left_once_no_process_exceeds_it() -> None:
    alarms = Alarms([warn("50%")], lambda: [ADDRESSES])
    assert len(alarms.see([sample(p, rss_bytes=3e9) for p in ("rank0", "rank1")])) == 1
    assert alarms.see([sample("rank0", rss_bytes=1e9), sample("rank1", rss_bytes=3e9)]) == []
    assert alarms.see([sample("rank0", rss_bytes=3e9), sample("rank1", rss_bytes=3e9)]) == []
    assert alarms.see([sample("rank2", rss_bytes=1e9)]) == []  # the others have ended
    assert len(alarms.see([sample("rank2", rss_bytes=3e9)])) == 1


def test_time_until_a_limit_is_a_threshold() -> None:
    alarms = Alarms([parse_threshold(MarkLevel.CRITICAL, "in:5min", given_as="--x")], list)
    assert alarms.see([sample(rss_bytes=9e9)]) == []

    def foreseen(at_s: float) -> list[float | None]:
        ahead = LimitAhead(
            limit="host RAM",
            limit_bytes=10 * GB,
            at_s=at_s,
            metric="rss_bytes",
            process="tree",
            value_bytes=9 * GB,
        )
        return [mark.left_s for mark in alarms.foresee(ahead, sample(at_s=100.0))]

    assert foreseen(500.0) == []
    assert foreseen(390.0) == [290.0]
    assert foreseen(380.0) == foreseen(410.0) == foreseen(390.0) == []
    assert foreseen(500.0) == []
    assert foreseen(390.0) == [290.0]


def test_reading_of_the_allocator_is_used_only_without_one_of_the_driver() -> None:
    inside = sample("rank0", vram_reserved_bytes=20e9)
    assert passed(Alarms([warn("50%")], lambda: [CARD]).see([inside])) == [
        ("vram_reserved_bytes", "rank0", 12 * GB, "GPU 0")
    ]
    alarms = Alarms([warn("50%")], lambda: [CARD])
    assert alarms.see([sample(vram_bytes=1e9), inside]) == []


def test_of_several_gpus_each_is_held_against_its_own_limit() -> None:
    cards = [
        Limit(name=f"GPU {n}", value_bytes=24 * GB, roles=DEVICE, metric=f"gpu{n}_vram_bytes")
        for n in range(2)
    ]
    alarms = Alarms([warn("50%")], lambda: cards)
    found = alarms.see([sample(vram_bytes=20e9, gpu0_vram_bytes=6e9, gpu1_vram_bytes=14e9)])
    assert passed(found) == [("gpu1_vram_bytes", "tree", 12 * GB, "GPU 1")]


def test_a_threshold_may_name_its_metric() -> None:
    alarms = Alarms([warn("vram=2GB")], list)
    found = alarms.see([sample(rss_bytes=3e9, vram_bytes=3e9), sample("main", rss_bytes=3e9)])
    assert [m.metric for m in found] == ["vram_bytes"]


@pytest.mark.parametrize("text", ["", "much", "0%", "101%", "-5%", "0", "rss=", "80%%", "nan%"])
def test_invalid_threshold_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        warn(text)


def limits(**given: str) -> tuple[Limit, ...]:
    return settle(GateOptions(**given), environ={}, directory=Path("/")).limits()


def test_limit_applies_to_the_host_only_with_a_gpu_limit() -> None:
    both = limits(limit="8GB", gpu_limit="24GB")
    assert {limit.name: Role.DEVICE in limit.roles for limit in both} == {
        "--limit": False,
        "--gpu-limit": True,
    }
    alone = limits(limit="8GB")
    assert Role.DEVICE in alone[0].roles


def test_message_of_a_threshold_is_safe_to_print() -> None:
    (mark,) = Alarms([warn("2GB")], list).see([sample("x\x1b[2J", vram_reserved_bytes=3e9)])
    said = threshold_events.live(mark, Screen(width=80))
    assert said.isprintable()
    assert "--warn-at 2GB (2.00 GB) with 3.00 GB at step 12" in said


def memdiag(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MEMDIAG, *arguments],
        cwd=directory,
        text=True,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )


def test_crossed_threshold_is_reported_once_and_recorded(tmp_path: Path) -> None:
    program = "x = bytearray(50_000_000); import time; time.sleep(0.5)"
    options = ["--warn-at", "30MB", "--critical-at", "100%", "--limit", "40MB"]
    done = memdiag(
        *("run", *options, "--json-file", "r.json", "-o", "r.csv"),
        *("--", sys.executable, "-c", program),
        directory=tmp_path,
    )
    assert done.stderr.count("memdiag: warning: RSS of all processes passed --warn-at 30MB") == 1
    assert done.stderr.count("memdiag: critical: RSS of all processes passed --critical-at") == 1
    assert " critical RSS of all processes" in done.stderr
    (found,) = json.loads((tmp_path / "r.json").read_text())["recordings"]
    assert [mark["level"] for mark in found["marks"]] == ["warning", "critical"]
    assert found["marks"][1]["limit"] == "--limit"
    again = json.loads(memdiag("analyze", "--json", "r.csv", directory=tmp_path).stdout)
    assert again["recordings"][0]["marks"] == found["marks"]


def test_analyze_holds_each_gpu_against_the_gpu_limit(tmp_path: Path) -> None:
    rows = [f"{n},{10e9 + n * 1e7:.0f},{5e9 + n * 2e7:.0f}" for n in range(400)]
    header = "step,gpu0_vram_bytes,gpu1_vram_bytes"
    (tmp_path / "log.csv").write_text("\n".join([header, *rows]) + "\n")
    options = ["--json", "--limit", "1GB", "--gpu-limit", "24GB"]
    done = memdiag("analyze", *options, "log.csv", directory=tmp_path)
    (found,) = json.loads(done.stdout)["recordings"]
    hits = {s["metric"]: [hit["limit"] for hit in s["limit_hits"]] for s in found["series"]}
    assert hits == {"gpu0_vram_bytes": ["--gpu-limit"], "gpu1_vram_bytes": ["--gpu-limit"]}
    first = found["first_limit"]
    assert found["series"][first["series"]]["metric"] == "gpu1_vram_bytes"
    assert first["at_x"]["value"] == pytest.approx(950, rel=0.02)
