"""What makes readings of pasted lines, each on lines that differ from those of the fixtures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from logs import read_log, series_of

from memdiag.analysis.diagnose import diagnose
from memdiag.errors import ReadError
from memdiag.recording.tables.axis import between_known_steps
from memdiag.values.measurements import AxisKind, Role
from memdiag.values.verdict import Verdict

N = 12
MIB = 1 << 20


def test_two_wordings_of_one_label_are_two_series(tmp_path: Path) -> None:
    lines = (f"job {n}: {w} mem {m + n} MB" for n in range(N) for w, m in (("up", 9), ("down", 2)))
    series = read_log(tmp_path, list(lines)).series
    assert {one.column.split()[0] for one in series} == {"up", "down"}
    assert all(len(set(np.diff(one.y[np.isfinite(one.y)]))) == 1 for one in series)


def test_a_wording_without_a_word_of_its_own_is_a_series_too(tmp_path: Path) -> None:
    wordings = (("cache memory", 900), ("shared cache memory", 20))
    lines = (f"step {n} {w} is: {m + n} MB" for n in range(N) for w, m in wordings)
    series = read_log(tmp_path, list(lines)).series
    firsts = {round(one.y[np.isfinite(one.y)][0] / 1e6) for one in series}
    assert firsts == {900, 20}
    assert all(len(set(np.diff(one.y[np.isfinite(one.y)]))) == 1 for one in series)


def test_the_number_of_a_thing_before_its_name_keeps_two_series_apart(tmp_path: Path) -> None:
    pairs = (("loader 3 heap used", 50), ("device 3 heap used", 700))
    lines = (f"epoch {n} - {what}: {m + 2 * n} MB" for n in range(N) for what, m in pairs)
    series = read_log(tmp_path, list(lines)).series
    assert sorted(round(one.y[np.isfinite(one.y)][0] / 1e6) for one in series) == [50, 700]


def test_a_number_is_read_in_a_column_far_from_its_name(tmp_path: Path) -> None:
    lines = [f"step {n}\nResident memory:{' ' * 40}{500 + n} MB" for n in range(N)]
    (series,) = read_log(tmp_path, lines).series
    assert list(np.diff(series.y)) == [1e6] * (N - 1)


def test_output_behind_marks_is_all_that_counts_only_where_the_rest_is_code(tmp_path: Path) -> None:
    printed = [f"fit({n})\n#> {50 + n} MB" for n in range(N)]
    assert read_log(tmp_path, printed).series[0].y[0] == 50e6
    marked = [f"#> started {n}\nstep {n} rss {700 + n} MB" for n in range(N)]
    (series,) = read_log(tmp_path, marked).series
    assert series.y[0] == 700e6


def test_a_time_of_its_own_takes_the_place_of_the_one_above(tmp_path: Path) -> None:
    lines = [
        f"== 2024-06-04 10:{n:02d}:00\npid = 7\ntime = {1717495200 + 60 * n}\nrss_mb = {400 + n}\n"
        for n in range(N)
    ]
    (series,) = (one for one in read_log(tmp_path, lines).series if "rss" in one.column)
    assert len(series.y) == N


def test_many_wordings_are_names_of_one_series(tmp_path: Path) -> None:
    words = [chr(97 + n) * 3 for n in range(N)]
    lines = [f"step {n}, file {word}, mem {n} MB" for n, word in enumerate(words)]
    (series,) = read_log(tmp_path, lines).series
    assert len(series.y) == N


def test_sizes_without_a_step_beside_readings_with_one_are_reported(tmp_path: Path) -> None:
    lines = [f"wrote shard {n} of 12 MB" for n in range(N)]
    recording = read_log(tmp_path, [*lines, *(f"step {n} rss {n} MB" for n in range(N))])
    assert [one.column for one in recording.series] == ["rss (bytes)"]
    assert any("shard" in note for note in recording.notes)


def test_sizes_alone_are_a_listing(tmp_path: Path) -> None:
    with pytest.raises(ReadError):
        read_log(tmp_path, [f"{('conv', 'linear')[n % 2]} layer, {n + 4} MB" for n in range(N)])


@pytest.mark.parametrize("is_below", [False, True])
def test_a_position_applies_to_its_block(tmp_path: Path, is_below: bool) -> None:
    blocks = [[f"epoch={n}", f"host memory: {n} MB", "done"] for n in range(N)]
    lines = [line for block in blocks for line in (block[::-1] if is_below else block)]
    (series,) = read_log(tmp_path, lines).series
    assert series.axis.kind is AxisKind.EPOCH
    assert (series.y / 1e6).tolist() == series.x.tolist() == list(range(N))


def test_a_time_on_its_own_line_applies_to_the_lines_below(tmp_path: Path) -> None:
    lines = [line for n in range(N) for line in (f"at 10:{n:02}:00", f"rss={n} MB", "x")]
    (series,) = read_log(tmp_path, lines).series
    assert series.x.tolist() == [60.0 * n for n in range(N)]


def test_messages_in_objects_are_a_log(tmp_path: Path) -> None:
    rows = [{"time": f"2025-01-01T00:00:{n:02}Z", "log": f"mem now {n} MB\n"} for n in range(N)]
    (series,) = read_log(tmp_path, list(map(json.dumps, rows))).series
    assert series.x.tolist() == list(range(N))


@pytest.mark.parametrize(
    ("total", "factor"), [(65_000_000, 1024), (63_477, 1 << 20), (61, 1 << 30)]
)
def test_the_size_of_the_machine_tells_the_unit_of_free(
    tmp_path: Path, total: int, factor: int
) -> None:
    header = "      total   used   free   shared  buff/cache  available"
    lines = [line for _ in range(N) for line in (header, f"Mem:  {total} 9 9 0 0 8")]
    (used,) = (s for s in read_log(tmp_path, lines).series if s.metric == "host_used_bytes")
    assert used.y[0] == 9 * factor


def test_a_rule_tells_where_the_columns_are(tmp_path: Path) -> None:
    table = ["Step Name     Max RSS", "========= ===========", "train one   {}K"]
    lines = [
        line.format(1200 + n) for n in range(N) for line in (f"2025-01-01 00:00:{n:02}", *table)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert (series.column, series.x.tolist()) == ("Max RSS", list(range(N)))


def test_positions_between_known_steps_follow_the_time() -> None:
    at_s = np.arange(40.0)
    told = np.repeat([100.0, 200.0, 300.0, 400.0], 10)
    between = between_known_steps(told, at_s)
    assert between is not None
    assert between.tolist() == (100 + 10 * at_s).tolist()


@pytest.mark.parametrize(
    "steps", [np.arange(40.0), np.arange(40) // 4 * 1.0, np.repeat([5.0, 9.0, 1.0, 7.0], 10)]
)
def test_steps_known_all_the_time_or_set_back_stay(steps: np.ndarray) -> None:
    assert between_known_steps(steps, np.arange(40.0)) is None


def test_steps_that_a_sampler_meets_are_not_changed() -> None:
    """The probe's readings within an interval and the sampler's at its end, at the same step."""
    steps = np.repeat(np.cumsum(np.random.default_rng(1).integers(1, 9, 200)), 2).astype(float)
    at_s = np.repeat(0.1 * np.arange(200), 2) + np.tile([0.0, 0.07], 200)
    assert between_known_steps(steps, at_s) is None


@pytest.mark.parametrize(
    ("line", "column", "expected"),
    [
        ("[GC [young: 9K->{0}K(9K)] 9{0}K->{0}K(99999K), 0.1 secs]", "memory (bytes)", 1e3),
        ("[GC 9{0}K->{0}K(99999K), 0.1 secs]", "heap left by GC", 1e3),
        ("GC(1) Garbage Collection (Hot) 9{0}M(15%)->{0}M(10%)", "heap left by", 1e6),
        ("gc @0.5s 2%: 0.1+0.2 ms clock, 9->8->{0} MB, 9 MB goal", "memory (bytes)", 1e6),
        ("epoch {0}, RAM 6.5% ({0}MB of 64000MB)", "RAM (bytes)", 1e6),
        ("iter {0} loss=nan rss_mb={0} vram_mb=9", "rss_mb", 1e6),
        ("Epoche {0}: Speicherverbrauch: 1.{0},0 MB", "Speicherverbrauch (bytes)", 1e6),
        ("request {0}: rss usage: {0} bytes, 40 vars in 600 bytes", "rss usage (bytes)", 1),
        ("epoch {0} mem_get_info ({0}, 16935682048)", "mem_get_info", 1),
        ("epoch {0} uordblks={0} fordblks=81234", "uordblks", 1),
        ("step {0}   pod-a   998m   {0}Mi", "memory (bytes)", MIB),
        ("step {0} Mem: 9999k total, {0}k used, 9k free", "Mem used (bytes)", 1e3),
        ("step {0} MiB Mem : 999 total, 9 free, {0} used", "MiB Mem used", MIB),
        ("step {0} cuda 9MB cpu {0}MB", "cpu (bytes)", 1e6),
        (
            "try {0}: wanted 20 MB (32 GB in all; {0} MB already allocated)",
            "already allocated",
            1e6,
        ),
        (
            "step {0} GC freed 3(5MB) objects, 40% free, {0}MB/900MB, paused 1ms",
            "memory (bytes)",
            1e6,
        ),
        ("W memory_monitor.py:21 -- node memory: {0} MB", "node memory (bytes)", 1e6),
        ("INFO memory of pid 4711 after request /predict: {0} MB", "after request /predict", 1e6),
    ],
)
def test_amount_in_use_of_a_line_is_read(
    tmp_path: Path, line: str, column: str, expected: float
) -> None:
    numbers = range(200, 200 + N)
    series = read_log(tmp_path, [line.format(n) for n in numbers]).series
    (one,) = (one for one in series if one.column.startswith(column))
    more = 1000 if "1.{0}" in line else 0
    assert one.y.tolist() == pytest.approx([(n + more) * expected for n in numbers])


def test_lines_of_one_block_with_one_label_are_several_series(tmp_path: Path) -> None:
    block = " heap total 9000K, used {}K\n Metaspace used 51K\n class space used 6K\n"
    series = read_log(tmp_path, "".join(block.format(n + 100) for n in range(N))).series
    assert {one.y[np.isfinite(one.y)][-1] for one in series} >= {111e3, 51e3, 6e3}


def test_number_without_the_unit_of_the_others_is_left_out_and_reported(tmp_path: Path) -> None:
    recording = read_log(
        tmp_path, [*(f"step {n} rss {n + 900} MB" for n in range(N)), "step 12 rss 9"]
    )
    assert recording.series[0].y.min() == 900e6
    assert any("step 12 rss 9" in note for note in recording.notes)


def test_html_tables_are_read(tmp_path: Path) -> None:
    rows = "".join(f"<tr><td>{n}</td><td><b>{n}.5</b></td></tr>" for n in range(N))
    page = f"<h1>Run</h1><table><tr><th>Epoch</th><th>RSS (MB)</th></tr>\n{rows}</table>\n"
    (series,) = read_log(tmp_path, page).series
    assert series.y.tolist() == [(n + 0.5) * 1e6 for n in range(N)]


@pytest.mark.parametrize("end", ["", "<td>see <table>\n"])
def test_html_cells_may_be_left_open(tmp_path: Path, end: str) -> None:
    rows = "\n".join(f"<tr><td>{n}<td>{n}.5" for n in range(N))
    page = f"<table><tr><th>Epoch<th>RSS (MB)\n{rows}\n</table>\n<table><tr>{end}"
    (series,) = read_log(tmp_path, page).series
    assert series.y.tolist() == [(n + 0.5) * 1e6 for n in range(N)]


def test_scalar_that_tensorboard_exports_as_json_is_named_by_its_file(tmp_path: Path) -> None:
    points = json.dumps([[1.7e9 + n, 10 * n, n] for n in range(N)])
    (series,) = read_log(tmp_path, points, name="run-a-tag-rss_mb.json").series
    assert (series.column, series.x[-1], series.y[-1]) == ("rss_mb", 110, 11e6)


def test_dates_are_the_axis_whatever_the_name_of_their_column(tmp_path: Path) -> None:
    rows = [f"2025-01-01 00:{5 * n:02}:00.000,{n + 900}" for n in range(N)]
    (series,) = read_log(tmp_path, ["bin(5m),avg(rss_mb)", *rows]).series
    assert (series.axis.kind, series.x[-1]) == (AxisKind.SECONDS, 300.0 * (N - 1))


def test_first_of_several_sizes_without_names_is_not_called_stable(tmp_path: Path) -> None:
    """It may be the wrong one: here the virtual size, beside a resident one that grows."""
    lines = [f"09:{n:02}:00 0 2.80G {1 + n / 20:.2f}G 0|0" for n in range(60)]
    assert diagnose(read_log(tmp_path, lines)).verdict is Verdict.INCONCLUSIVE
    cards = [f"09:{n:02}:00 | 0: 10.2G/24G 31% | 1: {8 + n / 9:.1f}G/24G 97%" for n in range(60)]
    assert diagnose(read_log(tmp_path, cards)).verdict is Verdict.INCONCLUSIVE
    alone = [line.rsplit(maxsplit=2)[0] for line in lines]
    assert diagnose(read_log(tmp_path, alone)).verdict is Verdict.STABLE


@pytest.mark.parametrize(("first", "generations"), [(900, {0, 1, 2}), (2000, {None})])
def test_line_between_readings_says_that_the_process_was_restarted(
    tmp_path: Path, first: int, generations: set[int | None]
) -> None:
    """If the memory falls there: "restarting the loader" does not restart the process."""
    runs = ([f"step {n} rss {first + 90 * m} MB" for m, n in enumerate(run)] for run in _RUNS)
    lines = [line for run in runs for line in (*run, "INFO restarting trainer from checkpoint")]
    rises = [*lines[:13], *(line.replace(" rss ", " rss 9") for line in lines[13:])]
    (series,) = read_log(tmp_path, lines if first < 1000 else rises).series
    found = series.generation
    assert set([None] if found is None else found.tolist()) == generations


_RUNS = (range(12), range(12, 24), range(24, 36))


def test_frame_that_polars_prints_is_read_without_its_types(tmp_path: Path) -> None:
    head = ["┌──────┬────────┐", "│ step ┆ rss_mb │", "│ ---  ┆ ---    │", "│ i64  ┆ f64    │"]
    rows = [f"│ {n:<4} ┆ {n}.5    │" for n in range(N)]
    recording = read_log(tmp_path, [*head, "╞══════╪════════╡", *rows, "└──────┴────────┘"])
    assert recording.series[0].y.tolist() == [(n + 0.5) * 1e6 for n in range(N)]
    assert not any("without a number" in note for note in recording.notes)


def test_a_name_before_a_row_of_numbers_is_not_that_of_the_first(tmp_path: Path) -> None:
    recording = read_log(tmp_path, [f"step {n} Mem: 64215 {9000 + n} 312 7" for n in range(N)])
    assert all(one.unread_share > 0.5 for one in recording.series)
    assert any("9000 312 7" in note for note in recording.notes)


@pytest.mark.parametrize(
    ("heading", "axis"),
    [
        ("metric,epoch 1,epoch 2,epoch 4,epoch 8", "epoch"),
        ("step,100,200,400,800", "step"),
        ("metric,1 min,2 min,3 min,4 min", "time (min)"),
        ("metric,run 1,run 2,run 3,run 4", "run"),
        (",10,20,30,40", "sample"),
        ("metric,bs 1,bs 2,bs 4,bs 8", ""),
        ("seq len,10,20,30,40", ""),
    ],
)
def test_columns_are_moments_but_not_settings(tmp_path: Path, heading: str, axis: str) -> None:
    lines = [heading, "loss,4,3,2,1", "rss_mb,5,6,7,8"]
    if not axis:
        with pytest.raises(ReadError):
            read_log(tmp_path, lines)
        return
    (series,) = read_log(tmp_path, lines).series
    assert series.axis.name == axis
    assert series.y.tolist() == [5e6, 6e6, 7e6, 8e6]


def test_times_of_both_halves_of_a_day(tmp_path: Path) -> None:
    times = ["11:59:30 AM", "12:00:30 PM", "1:00:30 PM", "11:59:30 PM", "12:00:30 AM"]
    (series,) = read_log(tmp_path, [f"{time} rss 9 MB" for time in times]).series
    assert series.x.tolist() == [0, 60, 3660, 43200, 43260]


def test_addresses_and_identifiers_are_no_numbers(tmp_path: Path) -> None:
    uuid = "65178467-77aa-4f1c-9c0e-2ed8ee7b9a{n:02}"
    lines = [f"host 10.0.0.{n}:{99 - n} request {uuid.format(n=n)} mem {n} MB" for n in range(N)]
    (series,) = read_log(tmp_path, lines).series
    assert series.axis.name == "row"
    assert (series.y / 1e6).tolist() == list(range(N))


def test_a_list_has_a_column_for_each_device(tmp_path: Path) -> None:
    rows = [
        {"step": n, "mem_per_rank_mb": [n, 9], "mem_history_mb": list(range(99))} for n in range(N)
    ]
    recording = read_log(tmp_path, list(map(json.dumps, rows)))
    assert [one.y.max() for one in recording.series] == [(N - 1) * 1e6, 9e6]
    assert any("mem_history_mb" in note for note in recording.notes)


def test_days_of_syslog_are_kept_over_the_new_year(tmp_path: Path) -> None:
    days = [*(f"Dec {day}" for day in range(28, 32)), *(f"Jan  {day}" for day in range(1, 6))]
    (series,) = read_log(tmp_path, [f"{day} 03:00:00 job: rss 9 MB" for day in days]).series
    assert series.x.tolist() == [86400.0 * n for n in range(9)]


def test_run_times_are_no_clock(tmp_path: Path) -> None:
    seconds = [60 + 4 * (n * n * 0.618 % 1) for n in range(N)]
    lines = ["s,max_rss_mb", *(f"{s:.2f},{n}" for n, s in enumerate(seconds))]
    (series,) = read_log(tmp_path, lines).series
    assert series.axis.name == "row"


def test_times_of_day_without_seconds(tmp_path: Path) -> None:
    def last(begin: int, every: int) -> float:
        lines = [f"{begin + n * every:02}:00,{n}" for n in range(N)]
        return float(read_log(tmp_path, ["time,rss_mb", *lines]).series[0].x[-1])

    assert last(12, 1) == 11 * 3600.0
    assert last(0, 4) == 44 * 60.0


def test_minutes_in_cells_are_no_megabytes(tmp_path: Path) -> None:
    lines = ["task_id\trealtime\tpeak_rss", *(f"{n}\t{n}m\t{n} MB" for n in range(N))]
    assert [one.column for one in read_log(tmp_path, lines).series] == ["peak_rss"]


def test_words_behind_a_size_written_twice_name_it(tmp_path: Path) -> None:
    lines = [
        f"HEAP: {size} ({size >> 20} MiB) {name}"
        for n in range(1, N)
        for size, name in ((n * MIB, "Bytes in use"), (MIB, "Bytes mapped by files"))
    ]
    assert not [one for one in read_log(tmp_path, lines).series if one.column == "HEAP"]


def test_tables_of_jira_and_restructured_text(tmp_path: Path) -> None:
    jira = ["||Step||RSS (MB)||", *(f"|{n}|{n}|" for n in range(N))]
    rule = "======  ========"
    rst = ["Memory", "", rule, "step    RSS (MB)", rule, *(f"{n:<8}{n}" for n in range(N)), rule]
    for lines in (jira, rst):
        (series,) = read_log(tmp_path, lines).series
        assert series.x.tolist() == list(range(N))
        assert series.y.tolist() == [n * 1e6 for n in range(N)]


def test_current_and_highest_amounts_are_two_series(tmp_path: Path) -> None:
    lines = [
        f"step {n}: {w} GPU memory usage: {n} MB" for n in range(N) for w in ("Current", "max")
    ]
    columns = {one.column for one in read_log(tmp_path, lines).series}
    assert columns == {"Current GPU memory usage (bytes)", "max GPU memory usage (bytes)"}


def test_lists_printed_again_and_again_are_rows(tmp_path: Path) -> None:
    documents = (json.dumps([{"step": n, "rss_mb": n}], indent=1) for n in range(N))
    (series,) = read_log(tmp_path, "\n".join(documents)).series
    assert series.y.tolist() == [n * 1e6 for n in range(N)]


def test_lines_of_a_block_without_a_time_are_one_row(tmp_path: Path) -> None:
    names = ["heap mem", "stack mem", "other mem"]
    blocks = [[f"{name} = {n} MB" for name in names] for n in range(N)]
    for series in read_log(tmp_path, [line for block in blocks for line in block]).series:
        assert series.y.tolist() == [n * 1e6 for n in range(N)]


def test_many_amounts_of_one_name_below_each_time_are_not_called_stable(tmp_path: Path) -> None:
    pools = [line for at in range(4) for line in (f"pool {chr(97 + at)}", f"heap: {7**at} MB")]
    lines = [line for n in range(4 * N) for line in (f"10:{n:02}:00", *pools)]
    recording = read_log(tmp_path, lines)
    assert any("4 amounts at each" in note for note in recording.notes)
    assert diagnose(recording).verdict is not Verdict.STABLE


def test_an_allocator_of_the_host_is_no_device(tmp_path: Path) -> None:
    def roles(names: str) -> list[Role]:
        lines = [f"step,{names}", *(f"{n},{n * 512},{n * 1024}" for n in range(N))]
        return [one.role for one in read_log(tmp_path, lines).series]

    assert roles("allocated,resident") == [Role.IN_USE, Role.RESIDENT]
    assert Role.DEVICE_ALLOCATED in roles("allocated,reserved")


def test_sizes_in_brackets_around_an_arrow(tmp_path: Path) -> None:
    lines = [f"10:{n:02}:00 [gc] memory [{n + 5}gb]->[{n}gb]/[64gb]" for n in range(N)]
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == [n * 1e9 for n in range(N)]


def test_labels_of_free_may_have_several_words(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(N)
        for line in (
            f"10:{n:02}:00",
            "        total  utilisé  libre  partagé  tamp/cache  disponible",
            f"Mem:    16012  {n + 400}  {7500 - n}  120  8000  {15000 - n}",
            "Partition d'échange:  2047  0  2047",
        )
    ]
    available = series_of(read_log(tmp_path, lines), "host_available_bytes")
    assert available.y.tolist() == [(15000 - n) * MIB for n in range(N)]


def test_rows_far_inside_a_document_are_read(tmp_path: Path) -> None:
    rows = [{"timestamp": {"time": f"10:{n:02}:00"}, "memory": {"avail": 9 - n}} for n in range(9)]
    document = json.dumps({"host": {"name": "a", "hosts": [{"cpus": 4, "statistics": rows}]}})
    (series,) = read_log(tmp_path, document).series
    assert series.falling
    assert series.x.tolist() == [60.0 * n for n in range(9)]


@pytest.mark.parametrize("name", ["memfree", "freeram", "kbmemavail", "MEMFREE"])
def test_free_memory_in_one_word_falls(tmp_path: Path, name: str) -> None:
    (series,) = read_log(tmp_path, [f"step,{name}", *(f"{n},{99 - n}" for n in range(N))]).series
    assert series.falling


def test_a_share_is_not_proposed_as_memory(tmp_path: Path) -> None:
    with pytest.raises(ReadError) as caught:
        read_log(tmp_path, ["step,resources,load (%)", *(f"{n},{n},{n}" for n in range(N))])
    assert "--metric 'resources=MB'" in caught.value.remedy


def test_screens_without_times_are_read_but_lists_of_settings_are_not(tmp_path: Path) -> None:
    words = ["loads", "stores", "hits", "misses", "opens", "closes", "forks", "waits", "joins"]
    screens = [[f"mem use  {n} MB", *(f"{word}   {n}" for word in words)] for n in range(N)]
    (series,) = read_log(tmp_path, [line for screen in screens for line in screen]).series
    assert series.y.tolist() == [n * 1e6 for n in range(N)]
    settings = [[f"name: {chr(97 + n)}", "kind: job", f"mem use: {n} MB"] for n in range(N)]
    others = [f"{word}: yes" for word in words]
    with pytest.raises(ReadError):
        read_log(tmp_path, [line for one in settings for line in (*one, *others)])


def test_processes_that_take_turns_are_all_read(tmp_path: Path) -> None:
    lines = [f"10:00:00 {who} rss: {n} MB" for n in range(400) for who in ("web", "job", "etl")]
    assert len(read_log(tmp_path, lines).series) == 3


def test_an_identifier_in_a_line_names_a_process(tmp_path: Path) -> None:
    ids = ["container_1709540012345_0042_01_000001", "container_1709540012345_0042_01_000003"]
    lines = [
        f"10:{n:02}:00 INFO usage of tree 7 for container-id {one}: {n + 50 * at} MB of 1 GB"
        " physical memory used; 2 GB of 9 GB virtual memory used"
        for n in range(N)
        for at, one in enumerate(ids)
    ]
    series = read_log(tmp_path, lines).series
    physical = {one.process: one.y.tolist() for one in series if "physical" in one.column}
    assert physical == {one: [(n + 50 * at) * 1e6 for n in range(N)] for at, one in enumerate(ids)}


@pytest.mark.parametrize("key", ["pod", "host", "instance", "node", "service"])
def test_lines_say_of_whom_they_are(tmp_path: Path, key: str) -> None:
    lines = [
        f'10:{n:02}:00 level=info {key}={who} msg="stats" rss={n + more}MiB'
        for n in range(N)
        for who, more in (("api-7d9f8-x2kqp", 0), ("api-7d9f8-9zzlm", 70))
    ]
    series = read_log(tmp_path, lines).series
    assert sorted(one.y[0] / MIB for one in series) == [0, 70]
    requests = [f"10:{n:02}:00 {key}=client{n} rss={n}MiB" for n in range(N)]
    assert len(read_log(tmp_path, requests).series) == 1


def test_a_cache_is_an_amount_that_changes(tmp_path: Path) -> None:
    lines = [
        f"2024-03-05T10:{n:02}:00Z tip={n}a height=6{n} cache={n}.5MiB(9txo)" for n in range(N)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == [(n + 0.5) * MIB for n in range(N)]


def test_frames_are_positions_though_each_has_a_clock(tmp_path: Path) -> None:
    lines = [
        f"Fra:{n} Mem:{n + part}.00M (Peak 99.00M) | Time:00:0{part}.20 | {what}"
        for n in range(N)
        for part, what in enumerate(("Scene", "Objects", "Sample 1/9", "Sample 9/9"))
    ]
    series = read_log(tmp_path, lines).series[0]
    assert (series.axis.name, series.x[-1]) == ("Fra", N - 1)
