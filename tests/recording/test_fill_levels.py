"""How full a log says that its buffers are: they hold a limited number of items."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from logs import read_log

from memdiag.analysis.diagnose import diagnose
from memdiag.values.measurements import Limit, Recording, Role
from memdiag.values.verdict import Reason, Verdict

COUNTS = range(12_000, 620_001, 12_000)


def training(level: str, counts: range = COUNTS) -> str:
    """Lines of a training whose memory grows by 88 MB as 12,000 more transitions are in it."""
    return "".join(
        f"step {100 * n} | {level.format(count=count)} | loss 1.{n % 7} | rss {1400 + 88 * n} MB\n"
        for n, count in enumerate(counts)
    )


@pytest.mark.parametrize(
    "level",
    [
        "replay {count}/1000000",
        "Buffer: {count}/1000000",
        "replay buffer: {count:,} of 1,000,000",
        "buffer={count}/1000000",
        "added {count} / 1000000",
    ],
)
def test_a_buffer_that_is_not_full_yet_is_no_leak(tmp_path: Path, level: str) -> None:
    recording = read_log(tmp_path, training(level))
    (found,) = recording.fill_levels
    assert (found.items[0], found.items[-1], found.capacity) == (12_000, 612_000, 1_000_000)
    deciding = diagnose(recording).deciding
    assert deciding is not None
    assert deciding.reason is Reason.FILLING
    assert deciding.need_more is not None
    # 3,233 more steps until it is full, and as long again.
    assert deciding.need_more.more_x == pytest.approx(100 * (388 / 12 + 50), rel=0.01)


@pytest.mark.parametrize(
    "level",
    [
        "processed {count}/1000000",  # work, whose results a leak would keep
        "queue {count}",  # of how many is not known, and may be of any number
        "replay 1000000/1000000",  # full
    ],
)
def test_what_is_not_said_to_fill_explains_no_growth(tmp_path: Path, level: str) -> None:
    assert diagnose(read_log(tmp_path, training(level))).verdict is Verdict.LEAK


@pytest.mark.parametrize("level", ["replay {count}", "replay_size={count}", "Replay size: {count}"])
def test_a_replay_buffer_has_a_capacity_that_may_not_be_said(tmp_path: Path, level: str) -> None:
    deciding = diagnose(read_log(tmp_path, training(level))).deciding
    assert deciding is not None
    assert (deciding.verdict, deciding.reason) == (Verdict.INCONCLUSIVE, Reason.FILLING)
    assert deciding.need_more is not None
    assert deciding.need_more.more_x is None


def test_a_replay_buffer_that_is_full_explains_no_growth(tmp_path: Path) -> None:
    """It has held as many for half of the run, and memory still grows."""
    log = "".join(
        training("replay {count}", range(count, count + 1))
        .replace("step 0 ", f"step {100 * n} ")
        .replace("rss 1400", f"rss {1400 + 88 * n}")
        for n, count in enumerate([*range(12_000, 312_000, 12_000), *[300_000] * 26])
    )
    assert diagnose(read_log(tmp_path, log)).verdict is Verdict.LEAK


def test_a_buffer_that_holds_fewer_than_before_is_not_filling(tmp_path: Path) -> None:
    """A queue that waits for its consumer has grown most of the time."""
    counts = [*COUNTS][:-1]
    log = training("queue {count}/1000000", range(12_000, 600_001, 12_000))
    log += f"step {100 * len(counts)} | queue 90000/1000000 | return 1.0 | rss 5800 MB\n"
    assert diagnose(read_log(tmp_path, log)).verdict is Verdict.LEAK


def test_memory_that_runs_out_before_it_is_full_leaks(tmp_path: Path) -> None:
    recording = read_log(tmp_path, training("replay {count}/1000000"))

    def verdict(limit_bytes: float) -> Verdict:
        limit = Limit(name="--limit", value_bytes=int(limit_bytes), roles=frozenset(Role))
        given = Recording(
            source="log",
            series=recording.series,
            limits=(limit,),
            fill_levels=recording.fill_levels,
        )
        return diagnose(given).verdict

    assert verdict(7e9) is Verdict.LEAK  # 8.6 GB once it is full
    assert verdict(12e9) is Verdict.INCONCLUSIVE


def rows(of: str = "replay", **more: float) -> str:
    return "".join(
        json.dumps({"step": count, f"{of}/size": count, "rss_mb": 1400 + 88 * n, **more}) + "\n"
        for n, count in enumerate(COUNTS)
    )


def test_a_capacity_may_be_in_a_column_of_its_own(tmp_path: Path) -> None:
    recording = read_log(tmp_path, rows(**{"replay/capacity": 1_000_000}), "metrics.jsonl")
    assert [one.name for one in recording.fill_levels] == ["replay/size"]
    assert diagnose(recording).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    "level",
    [
        "entries={count} max_entries=1000000 hits=0.4",
        "INFO cache_size={count} cache_capacity=1000000",
        "lru_size: {count} lru_maxsize: 1000000",
        "preloaded {count}/1000000",
        "cache keys: {count}, cache keys limit: 1000000",
    ],
)
def test_so_may_it_in_a_line_of_a_log(tmp_path: Path, level: str) -> None:
    recording = read_log(tmp_path, training(level))
    assert [found.capacity for found in recording.fill_levels] == [1_000_000]
    deciding = diagnose(recording).deciding
    assert deciding is not None
    assert deciding.reason is Reason.FILLING


def test_what_is_loaded_into_memory_fills_it(tmp_path: Path) -> None:
    """The bar of tqdm, which may be as straight as a leak."""
    bars = [
        f"Loading into RAM: {n:3}%|#    | {640 * n}/64000 [02:10<48:37, 22it/s, ram={2 + n}GB]"
        for n in range(4, 48)
    ]
    recording = read_log(tmp_path, bars)
    assert [found.capacity for found in recording.fill_levels] == [64_000]
    assert diagnose(recording).verdict is Verdict.INCONCLUSIVE


def test_the_capacity_of_something_else_is_none(tmp_path: Path) -> None:
    recording = read_log(tmp_path, rows("cache", **{"disk/capacity": 1_000_000}), "metrics.jsonl")
    assert recording.fill_levels == ()
    assert diagnose(recording).verdict is Verdict.LEAK


def test_a_capacity_that_is_said_once_is_that_of_the_buffer(tmp_path: Path) -> None:
    recording = read_log(tmp_path, "max_replay_size: 1000000\n" + training("Replay Size = {count}"))
    (found,) = recording.fill_levels
    assert (found.items[-1], found.capacity) == (612_000, 1_000_000)


def test_a_cache_below_its_limit_is_no_leak_but_a_pool_may_be(tmp_path: Path) -> None:
    def said(name: str) -> Verdict:
        lines = [
            line.format(name)
            for n in range(48)
            for line in (
                f"2024-10-02 {4 + n // 3:02}:{n % 3 * 20:02}:00",
                "proxy.{}.total_bytes 34359738368",
                f"proxy.{{}}.bytes_used {10**9 + 600 * n * 10**6}",
            )
        ]
        return diagnose(read_log(tmp_path, lines)).verdict

    assert said("ram_cache") is Verdict.INCONCLUSIVE
    assert said("ram_arena") is Verdict.LEAK


@pytest.mark.parametrize(("most", "levels"), [(4 << 30, ["used_memory"]), (0, [])])
def test_a_server_that_drops_entries_fills_up_to_its_limit(
    tmp_path: Path, most: int, levels: list[str]
) -> None:
    """Redis, with and without a limit."""
    lines = []
    for at in range(30):
        lines += [f"# 2025-05-15 12:{at:02d}:00", f"used_memory:{(300 + 70 * at) << 20}"]
        lines += [f"maxmemory:{most}", "maxmemory_policy:allkeys-lru", ""]
    recording = read_log(tmp_path, lines)
    assert [level.name for level in recording.fill_levels] == levels


def test_the_sections_of_a_box_name_what_is_in_them(tmp_path: Path) -> None:
    """Stable-Baselines3: `size` and `capacity` below `replay/`."""
    box = [
        "| time/              |             |",
        "|    memory_mb       | {rss:<11} |",
        "|    iterations      | {n:<11} |",
        "| replay/            |             |",
        "|    size            | {count:<11} |",
        "|    capacity        | 1000000     |",
    ]
    lines = []
    for n, count in enumerate(COUNTS):
        rows = [row.format(rss=1400 + 88 * n, n=n, count=count) for row in box]
        lines += ["-" * 38, *rows, "-" * 38]
    recording = read_log(tmp_path, lines)
    (found,) = recording.fill_levels
    assert (found.name, found.items[-1], found.capacity) == ("replay/size", 612_000, 1_000_000)
    assert diagnose(recording).verdict is Verdict.INCONCLUSIVE


def bars(does: str) -> list[str]:
    bar = "train: {} images ({:.1f}GB RAM): {:3d}%|   | {}/118287 [00:{:02}<01:39]"
    return [bar.format(does, 0.2 * n, n, 1182 * n, n) for n in range(1, 50)]


def test_a_cache_of_items_that_is_not_complete_is_filling(tmp_path: Path) -> None:
    """Ultralytics with `cache="ram"`, up to half of the images."""
    recording = read_log(tmp_path, bars("Caching"))
    (found,) = recording.fill_levels
    assert (found.items[-1], found.capacity) == (1182 * 49, 118_287)
    deciding = diagnose(recording).deciding
    assert deciding is not None
    assert (deciding.verdict, deciding.reason) == (Verdict.INCONCLUSIVE, Reason.FILLING)


def test_work_that_is_not_complete_fills_nothing(tmp_path: Path) -> None:
    assert read_log(tmp_path, bars("Converting")).fill_levels == ()
