"""Numbers below the commands of a shell and of R, vectors of MATLAB, and tables of wikis."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log

import memdiag
from memdiag.errors import ReadError
from memdiag.recording.documents.wiki_tables import wiki_tables
from memdiag.recording.inputs.shell_session import with_commands_names, with_lists
from memdiag.recording.read import read
from memdiag.values.measurements import AxisKind, Role


@pytest.mark.parametrize(
    ("command", "printed", "expected"),
    [
        ("me@box:~/job$ ps -o rss= -p 4711", "1070888", "rss (KiB): 1070888"),
        ("$ ps -o rss= -p 4711 | tr -d ' '", " 1070888", "rss (KiB): 1070888"),
        ("$ awk '/VmRSS/{print $2}' /proc/7/status", "912", "VmRSS (KiB): 912"),
        ("$ ps -o rss= -p 7 | awk '{print $1/1024}'", "812.5", "rss (MiB): 812.5"),
        ("$ grep \"Pss:\" /proc/7/smaps_rollup | awk '{print $2}'", "912", "Pss (KiB): 912"),
        ("$ grep \"Threads:\" /proc/7/status | awk '{print $2}'", "91", "Threads: 91"),
        ("PS C:\\a> (ps train).WorkingSet64 / 1MB", "1203,1367", "WorkingSet64 (MiB): 1203.1367"),
        ("PS C:\\a> (ps train).WorkingSet64", "1203136700", "WorkingSet64: 1203136700"),
        ("> lobstr::mem_used()", "285.70 MB", "mem_used: 285.70 MB"),
        ("> mem_used()", "[1] 285700000", "mem_used: 285700000"),
        ("[me@login2 ~]$ sstat -j 7.batch -o MaxRSS%12 -n", "  21.4G ", "MaxRSS: 21.4G"),
        ('> collectgarbage("count")', "4679.68", "lua_memory (KiB): 4679.68"),
        ("> collectgarbage('count') / 1024", "4.68", "lua_memory (MiB): 4.68"),
        ('> print(collectgarbage("count") * 1024)', "4679", "lua_memory (bytes): 4679"),
        ('> collectgarbage("count") - before', "4679.68", "4679.68"),
        ("> collectgarbage()", "0", "0"),
        ("$ free -m | awk '{print $3}'", "7412", "7412"),
        ("$ wc -l train.log", "7412", "7412"),
        ("> quoted text about memory", "7412", "7412"),
        ("> length(rows)", "[1] 7412", "[1] 7412"),
    ],
)
def test_the_command_names_the_number_below_it(command: str, printed: str, expected: str) -> None:
    lines = with_commands_names([command.encode(), printed.encode()])
    # (The numbers in a command are not readings.)
    left = command if expected == printed else ""
    assert [line.decode() for line in lines] == [left, expected]


def test_only_a_loop_names_several_numbers() -> None:
    printed = [b"812000", b"part two", b"815000"]
    once = [b"$ ps -C python -o rss=", *printed]
    assert with_commands_names(once) == once
    named = with_commands_names([b"$ while sleep 5; do ps -o rss= -p 7; done", *printed, b"$ ls"])
    first = b"elapsed time (s): 0, rss (KiB): 812000"
    second = b"elapsed time (s): 5, rss (KiB): 815000"
    assert named[1:4] == [first, b"part two", second]
    named = with_commands_names([b"> for (i in 1:2) print(mem_used(fit(i)))", *printed])
    assert named[1:] == [b"mem_used: 812000", b"part two", b"mem_used: 815000"]


@pytest.mark.parametrize(
    ("command", "before"),
    [
        ("$ while sleep $N; do ps -o rss= -p 7; done", "tick: 1, "),
        ("> for (;;) { await sleep(5000); print(process.memoryUsage().rss) }", "tick: 1, "),
        ("> for (i in 1:2) { print(mem_used()); Sys.sleep(0.5) }", "elapsed time (s): 0.5, "),
        ("$ watch -n2 'ps -o rss= -p 7'", "elapsed time (s): 2, "),
    ],
)
def test_what_dates_the_readings_of_a_loop(command: str, before: str) -> None:
    named = with_commands_names([command.encode(), b"812000", b"815000"])
    assert named[2].decode().startswith(before)


@pytest.mark.parametrize(
    ("pause", "axis", "last_x"),
    [("; sleep 30", AxisKind.SECONDS, 330), ("; sleep 2m", AxisKind.SECONDS, 1320), ("", None, 11)],
)
def test_a_loop_that_waits_tells_the_time(
    tmp_path: Path, pause: str, axis: AxisKind | None, last_x: float
) -> None:
    """`Pss:`, whose name is behind no other word of memory, and the unit that `awk` prints."""
    read = """grep -E "Pss:" /proc/$P/smaps_rollup | awk '{print int($2/1024) " MiB"}'"""
    lines = [
        f"$ for i in $(seq 12); do {read}{pause}; done",
        *(f"{800 + n} MiB" for n in range(12)),
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.role is Role.PROPORTIONAL
    assert series.axis.kind is (axis or AxisKind.INDEX)
    assert (series.x[-1], series.y[-1]) == (last_x, 811 * (1 << 20))


@pytest.mark.parametrize(
    ("body", "when"),
    [
        ('echo "$(date +%H:%M) $(ps -o rss= -p 7)"; sleep 60', "11:{:02}"),
        ("echo `date +%s` `ps -o rss= -p 7`; sleep 60", "17119600{:02}"),
        ('printf \'%s,%s\\n\' "$(date +%F_%T)" "$(ps -o rss= -p 7)"', "2024-03-11_11:{:02}:00,"),
    ],
)
def test_a_loop_names_the_number_behind_its_time(body: str, when: str) -> None:
    printed = [f"{when.format(n)}  {812 + n}" for n in range(9)]
    lines = [f"me@box:~$ while true; do {body}; done", *printed, "^C", "me@box:~$ ls"]
    named = with_commands_names([line.encode() for line in lines])
    expected = [f"{when.format(n)}  rss (KiB): {812 + n}" for n in range(9)]
    assert [line.decode() for line in named] == ["", *expected, "^C", "me@box:~$ ls"]


@pytest.mark.parametrize(
    "command",
    [
        'while sleep 9; do echo "$(date +%T) $(ls /tmp | wc -l)"; ps -o rss= -p 7 >> log; done',
        'while sleep 9; do echo "$(date +%T) $(cat count)"; done',
        'echo "$(date +%T) $(ps -o rss= -p 7)"',
    ],
)
def test_a_number_behind_a_time_needs_a_loop_and_a_name(command: str) -> None:
    lines = [f"$ {command}".encode(), *(f"11:{n:02}:20 {812 + n}".encode() for n in range(9))]
    assert with_commands_names(lines) == lines


@pytest.mark.parametrize(
    ("command", "counted"),
    [
        ('> for (k in 1:9) { run(k); cat(k*40, "sims:", format(mem_used()), "\\n") }', "sims"),
        (
            "> for (k in 1:9) cat(paste0(k*40, ' maps done: ', pryr::mem_used()), '\\n')",
            "maps done",
        ),
        ('irb(main):001:0> 9.times { |i| run; puts "#{i*40} runs: #{mem_used} MB" }', "runs"),
        ("> for (k of all) { run(k); console.log(`${k.n} runs: ${mem_used()} MB`) }", "runs"),
    ],
)
def test_a_loop_names_the_size_behind_its_count(tmp_path: Path, command: str, counted: str) -> None:
    lines = [command, *(f"{40 * n} {counted}: {310 + n}.5 MB " for n in range(1, 10)), "> q()"]
    (series,) = read_log(tmp_path, lines).series
    assert series.metric == "mem_used_bytes"
    assert series.x[:2].tolist() == [40, 80]
    assert series.y[:2].tolist() == [311.5e6, 312.5e6]


@pytest.mark.parametrize(
    "command",
    [
        '> for (k in 1:9) cat(k*40, "maps:", format(object_size(map(k))), "\\n")',
        '> for (k in 1:9) { mem_used(); cat(k*40, "maps:", file.size(f), "\\n") }',
        '> cat(40, "maps:", format(mem_used()), "\\n")',
        '> for (k in 1:9) cat(k*40, "sims:", format(mem_used()), "\\n")',
        'irb(main):001:0> 9.times { |i| mem_used; puts "#{i*40} maps: #{size} MB" }',
    ],
)
def test_a_size_behind_a_count_needs_a_loop_that_prints_both(tmp_path: Path, command: str) -> None:
    lines = [command, *(f"{40 * n} maps: {310 + n}.5 MB " for n in range(1, 10)), "> q()"]
    with pytest.raises(ReadError):
        read_log(tmp_path, lines)


@pytest.mark.parametrize(
    ("command", "row", "bytes_each"),
    [
        ('> for i=1,9 do run(); print(i*40, collectgarbage("count")) end', "{}\t{}.5", 1024),
        ("> for (k in 1:9) { run(k); cat(k*40, rss_mb(), '\\n') }", "{} {}.5 ", 1e6),
        ("> for (let k=1; k<9; k++) console.log(k*40, rss_mb())", "{} {}.5", 1e6),
        (
            "julia> for k in 1:9; run(); println(40k, ' ', k*40, ', ', rss_mb()); end",
            "7 {} {}.5",
            0,
        ),
    ],
)
def test_a_loop_names_the_numbers_that_it_prints(
    tmp_path: Path, command: str, row: str, bytes_each: float
) -> None:
    lines = [command, *(row.format(40 * n, 310 + n) for n in range(1, 10))]
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == [(310.5 + n) * (bytes_each or 1e6) for n in range(1, 10)]
    if bytes_each:
        assert series.x[:2].tolist() == [40, 80]


@pytest.mark.parametrize(
    ("command", "row"),
    [
        ("> for i=1,9 do run(); print(i*40, os.clock()) end", "{}\t{}.5"),
        ("> for i=1,9 do rss_mb(); print(i*40, count(i)) end", "{}\t{}.5"),
        ("> for i=1,9 do print(i*40, rss_mb()) print(i, 4) end", "{}\t{}.5"),
        ("> for i=1,9 do print(i*40, rss_mb(), size(i)) end", "{}\t{}.5"),
        ("> for i=1,9 do print(i*40, collectgarbage('count') - base) end", "{}\t{}.5"),
    ],
)
def test_numbers_of_a_loop_need_a_name_each(command: str, row: str) -> None:
    lines = [command, *(row.format(40 * n, 310 + n) for n in range(1, 10))]
    typed = [line.encode() for line in lines]
    assert with_commands_names(typed) == typed


def test_the_result_of_a_loop_of_ruby_is_no_reading(tmp_path: Path) -> None:
    prompt = "irb(main):001:0> 34.times {{ |i| {} }}"
    shown = [f"{310 + n}.5" for n in range(9)]
    lines = [prompt.format("puts rss_mb"), *shown, "=> 34", "irb(main):002:0> "]
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == [(310.5 + n) * 1e6 for n in range(9)]
    with pytest.raises(ReadError):
        read_log(tmp_path, [prompt.format("log(rss_mb)"), "=> 34"] * 9)


def test_a_console_is_no_quote(tmp_path: Path) -> None:
    lines = []
    for n in range(9):
        lines += ["> run(500)", "> run(9)", '> collectgarbage("count")', f"{4679 + n}.5"]
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == [(4679.5 + n) * 1024 for n in range(9)]


def test_a_vector_in_parts_is_one_list() -> None:
    text = b"""
mem_mb =

  Columns 1 through 3

   1185.9   1211.1   1.2e3

  Columns 4 and 5

   1299.7   1306.9

other = 5
"""
    assert b"\nmem_mb = [1185.9, 1211.1, 1.2e3, 1299.7, 1306.9]\n" in with_lists(text)
    assert with_lists(text.replace(b"Columns 4", b"Rows 4")) == text.replace(
        b"Columns 4", b"Rows 4"
    )


def test_cells_of_wikis_may_have_attributes_and_lines_of_their_own() -> None:
    text = """{| class="wikitable"
|+ A caption
! Step !! RSS (MB)
|-
| 10
| style="color:red" | 812
|- class="odd"
| '''20''' || 830
|}
|===
|Step |RSS

|10
|812 \\| 3
|===
[cols="2*"]
|===
|Step
|RSS
|10
|812
|===
"""
    found = list(wiki_tables(text.split("\n")))
    assert found == [
        (1, [["Step", "RSS (MB)"], ["10", "812"], ["20", "830"]]),
        (10, [["Step", "RSS"], ["10", "812 \\| 3"]]),
        (17, [["Step", "RSS"], ["10", "812"]]),
    ]


def test_a_table_of_a_wiki_needs_an_end(tmp_path: Path) -> None:
    assert not list(wiki_tables(["{| a", "! Step", "| 10"]))
    assert list(wiki_tables(["|===", "|==="])) == [(1, [])]


def test_a_process_that_telegraf_reports_with_another_pid_is_another_life(tmp_path: Path) -> None:
    log = tmp_path / "metrics.out"
    lives = [(7, range(800, 1200, 10)), (8, range(800, 1600, 10))]
    points = [f"memory_rss={mb << 20}i,pid={pid}i" for pid, life in lives for mb in life]
    at_s = range(1_714_645_200, 1_714_700_000, 60)
    lines = zip(points, at_s, strict=False)
    log.write_text("".join(f"procstat,host=a {fields} {at}000000000\n" for fields, at in lines))
    (recording,) = memdiag.analyze(log)
    assert recording.verdict.value == "leak"
    assert recording.series[0].samples == len(lives[1][1])


def test_hours_and_minutes_above_a_table_are_a_time_of_day(tmp_path: Path) -> None:
    log = tmp_path / "smem.txt"
    header = "  PID Command   Swap  USS  PSS  RSS\n"
    hours = [f"--- {hour:02d}:00\n{header} 7 train  0 80M 81M {82 + hour}M\n" for hour in range(20)]
    log.write_text("".join(hours))
    series = read(str(log)).series[0]
    assert series.x[-1] - series.x[0] == 19 * 3600
