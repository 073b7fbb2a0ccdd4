"""What common tools print, in their own words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError
from memdiag.values.measurements import AxisKind, Role

MIB, KIB = 2.0**20, 1024.0
N = 30


def _clock(i: int) -> str:
    return f"12:{i // 60:02d}:{i % 60:02d}"


SMI_HEADER = "timestamp, index, name, utilization.gpu [%], utilization.memory [%], "
SMI_HEADER += "memory.total [MiB], memory.free [MiB], memory.used [MiB]\n"


def _smi(i: int, gpu: int = 0) -> str:
    used = 1000 + 10 * i + gpu
    return (
        f"2024/11/23 {_clock(i)}.950, {gpu}, NVIDIA RTX A6000, {90 + i % 5} %, 73 %, 49140 MiB,"
        f" {48571 - used} MiB, {used} MiB\n"
    )


@pytest.mark.parametrize("header", [SMI_HEADER, ""], ids=["header", "no header"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_nvidia_smi_query(tmp_path: Path, header: str, encoding: str) -> None:
    text = header + "".join(_smi(i) for i in range(N))
    used = series_of(read_log(tmp_path, text.encode(encoding)), "memory_used_bytes")
    assert used.y.tolist() == [(1000 + 10 * i) * MIB for i in range(N)]
    assert used.role is Role.DEVICE
    assert used.axis.kind is AxisKind.SECONDS
    assert used.x.tolist() == list(range(N))


def test_nvidia_smi_free_memory_falls(tmp_path: Path) -> None:
    recording = read_log(tmp_path, SMI_HEADER + "".join(_smi(i) for i in range(N)))
    assert series_of(recording, "memory_free_bytes").falling
    assert {s.metric for s in recording.series} == {"memory_free_bytes", "memory_used_bytes"}


def test_nvidia_smi_of_two_gpus_is_two_processes(tmp_path: Path) -> None:
    text = SMI_HEADER + "".join(_smi(i, gpu) for i in range(N) for gpu in range(2))
    recording = read_log(tmp_path, text)
    used = [s for s in recording.series if s.metric == "memory_used_bytes"]
    assert [len(s.y) for s in used] == [N, N]
    assert [s.process for s in used] == ["gpu 0", "gpu 1"]


def test_nvidia_smi_without_units(tmp_path: Path) -> None:
    text = "index, memory.used [MiB]\n" + "".join(f"0, {100 + i}\n" for i in range(N))
    used = series_of(read_log(tmp_path, text), "memory_used_bytes")
    assert used.y.tolist() == [(100 + i) * MIB for i in range(N)]


def test_nvidia_smi_compute_apps(tmp_path: Path) -> None:
    text = "pid, process_name, used_gpu_memory [MiB]\n" + "".join(
        f"{pid}, python, {pid + i} MiB\n" for i in range(N) for pid in (100, 200)
    )
    recording = read_log(tmp_path, text)
    assert [s.process for s in recording.series] == ["python pid 100", "python pid 200"]
    assert recording.series[0].x.tolist() == list(range(N))
    assert recording.series[0].y[0] == 100 * MIB


_QUERY = "nvidia-smi --query-gpu=index,memory.total,memory.used,utilization.gpu --format=csv,"


@pytest.mark.parametrize("command", ["# date; ", "$ while true; do date; ", "From "])
@pytest.mark.parametrize("front", ["2025-10-02 11:{:02}:15, ", "Thu Oct  2 11:{:02}:15 CEST 2025 "])
@pytest.mark.parametrize("unit", ["", " MiB"])
def test_the_command_of_nvidia_smi_names_the_columns(
    tmp_path: Path, command: str, front: str, unit: str
) -> None:
    options = "noheader" if unit else "noheader,nounits"
    rows = [
        f"{front.format(i)}{gpu}, 81559{unit}, {9000 + i + gpu}{unit}, {i % 9}"
        for i in range(N)
        for gpu in (0, 1)
    ]
    found = read_log(tmp_path, [f"{command}{_QUERY}{options} -l 60 | tee -a log", *rows]).series
    assert [one.process for one in found] == ["gpu 0", "gpu 1"]
    for gpu, used in enumerate(found):
        assert used.metric == "memory_used_bytes"
        assert used.y.tolist() == [(9000 + i + gpu) * MIB for i in range(N)]
        assert np.diff(used.x).tolist() == [60] * (N - 1)


def test_nvidia_smi_names_processes_in_turn_without_times(tmp_path: Path) -> None:
    command = "$ nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv,noheader -l 1"
    rows = [f"{pid}, python, {pid + i} MiB" for i in range(N) for pid in (100, 200)]
    found = read_log(tmp_path, [command, *rows]).series
    assert [one.x.tolist() for one in found] == [list(range(N))] * 2


@pytest.mark.parametrize(
    ("behind", "row"),
    [
        ("noheader,nounits | cut -d, -f1,3,2,4", "0, {}, 81559, 3"),
        ("noheader,nounits | awk -F, '{print $1, $3, $2, $4}' OFS=,", "0, {}, 81559, 3"),
        ("noheader,nounits", "4, 0, {}, 81559, 3"),  # a count in front
        ("noheader,nounits", "{}, 81559, 3"),
        ("nounits", "0, {}, 81559, 3"),  # its header is elsewhere
    ],
)
def test_columns_that_the_query_does_not_show_are_refused(
    tmp_path: Path, behind: str, row: str
) -> None:
    with pytest.raises(ReadError):
        read_log(tmp_path, [f"# {_QUERY}{behind}", *(row.format(9000 + i) for i in range(N))])


def test_nvidia_smi_dmon_and_pmon(tmp_path: Path) -> None:
    dmon = "# gpu     sm    mem     fb   bar1   ccpm\n# Idx      %      %     MB     MB     MB\n"
    dmon += "".join(f"    0     50     20   {500 + i}      5      0\n" for i in range(N))
    assert read_log(tmp_path, dmon).series[0].y.tolist() == [(500 + i) * MIB for i in range(N)]
    pmon = "# gpu         pid   type     fb   ccpm    command \n"
    pmon += "# Idx           #    C/G     MB     MB    name \n"
    pmon += "".join(
        f"    0       {pid}     C   {pid + i}      0    python   \n"
        for i in range(N)
        for pid in (100, 200)
    )
    recording = read_log(tmp_path, pmon)
    assert [len(s.y) for s in recording.series] == [N, N]


def test_mprof(tmp_path: Path) -> None:
    text = "CMDLINE python train.py\n"
    for i in range(N):
        text += f"MEM {100 + i}.5 {1700000000 + i / 10:.4f}\n"
        text += f"CHLD 4711 {50 + i}.0 {1700000000 + i / 10:.4f}\n"
    recording = read_log(tmp_path, text)
    main = series_of(recording, "memory_bytes", "main")
    assert main.y.tolist() == [(100.5 + i) * MIB for i in range(N)]
    assert main.x[10] == pytest.approx(1.0)
    assert series_of(recording, "memory_bytes", "child 4711").y[0] == 50 * MIB


def test_psrecord(tmp_path: Path) -> None:
    text = "# Elapsed time   CPU (%)     Real (MB)   Virtual (MB)\n"
    text += "".join(f"{i:12.3f} {99:12.3f} {100 + i:12.3f} {900:12.3f}\n" for i in range(N))
    series = series_of(read_log(tmp_path, text), "rss_bytes")
    assert series.y.tolist() == [(100 + i) * 1e6 for i in range(N)]
    assert series.axis.kind is AxisKind.SECONDS


@pytest.mark.parametrize("suffix", ["", " PM"])
def test_pidstat(tmp_path: Path, suffix: str) -> None:
    text = "Linux 6.1 (host)  02/07/2026  _x86_64_  (16 CPU)\n"
    for i in range(N):
        text += (
            f"\n{_clock(i)}{suffix}      UID       PID  minflt/s  majflt/s     VSZ     RSS   %MEM"
        )
        text += "  Command\n"
        text += f"{_clock(i + 1)}{suffix}  1000  4711   0.00   0.00  2000000  {900 + i}"
        text += "   1.2  python\n"
    series = series_of(read_log(tmp_path, text), "rss_bytes")
    assert series.y.tolist() == [(900 + i) * KIB for i in range(N)]
    assert series.process == "python"
    assert series.axis.kind is AxisKind.SECONDS


def test_top_in_batch_mode(tmp_path: Path) -> None:
    text = ""
    for i in range(N):
        text += f"top - {_clock(i)} up 1 day,  1 user,  load average: 0.1, 0.2, 0.3\n"
        text += "Tasks:   2 total,   1 running\nMiB Mem :  16000.0 total,    100.0 free\n\n"
        text += "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n"
        text += (
            f"   4711 me     20   0   9.1g   {1 + i / 10:.1f}g  9 R  99.0   1.2   1:02.03 python\n"
        )
        text += "   4712 me     20   0    9000   5000   3000 S   0.0   0.0   0:00.00 bash\n\n"
    recording = read_log(tmp_path, text)
    python = series_of(recording, "rss_bytes", "python")
    assert python.y[0] == 2.0**30
    assert python.x.tolist() == list(range(N))
    assert series_of(recording, "rss_bytes", "bash").y[0] == 5000 * KIB


def test_ps_in_a_loop(tmp_path: Path) -> None:
    block = (
        "  PID   RSS    VSZ COMMAND\n 4711 {} 900000 python train.py --lr 1e-3\n 4712 900 9000 sh\n"
    )
    recording = read_log(tmp_path, "".join(block.format(5000 + i) for i in range(N)))
    series = series_of(recording, "rss_bytes", "python train.py --lr 1e-3")
    assert series.y.tolist() == [(5000 + i) * KIB for i in range(N)]
    assert series.x.tolist() == list(range(N))


def test_of_hundreds_of_processes_the_largest_are_taken(tmp_path: Path) -> None:
    block = "  PID   RSS COMMAND\n" + "".join(f" {n} {n} prog{n}\n" for n in range(1000, 1300))
    recording = read_log(tmp_path, block * 5)
    assert {s.process for s in recording.series} == {f"prog{n}" for n in range(1280, 1300)}
    assert any("of 300 processes" in note for note in recording.notes)


def test_short_commands_alone_are_not_left_out(tmp_path: Path) -> None:
    header = "  PID   RSS COMMAND\n"
    blocks = [f"{header} {1000 + n // 3} {n} sh\n {2000 + n // 3} {n} cat\n" for n in range(9)]
    recording = read_log(tmp_path, "".join(blocks))
    assert len({s.process for s in recording.series}) > 1
    assert not any("left out" in note for note in recording.notes)


def test_a_pid_that_comes_again_begins_a_sampling(tmp_path: Path) -> None:
    rows = "".join(f" 4711 {5000 + i} python\n 4712 900 sh\n" for i in range(N))
    series = series_of(read_log(tmp_path, "  PID   RSS COMMAND\n" + rows), "rss_bytes", "python")
    assert series.x.tolist() == list(range(N))
    assert series.y.tolist() == [(5000 + i) * KIB for i in range(N)]


def test_smem_has_columns_behind_the_command(tmp_path: Path) -> None:
    header = "  PID User     Command                         Swap      USS      PSS      RSS \n"
    lines = [
        f" 4711 me  python train.py --lr 1e-3   0   {i}   {50 + i}   {90 + i} " for i in range(N)
    ]
    recording = read_log(tmp_path, "".join(f"{header}{line}\n" for line in lines))
    rss = series_of(recording, "rss_bytes", "python train.py --lr 1e-3")
    assert rss.y.tolist() == [(90 + i) * KIB for i in range(N)]
    assert series_of(recording, "uss_bytes").y.tolist() == [i * KIB for i in range(N)]


SCREEN = """\
{date}
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.60.13    Driver Version: 525.60.13    CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
|===============================+======================+======================|
|   0  NVIDIA RTX A6000    Off  | 00000000:01:00.0 Off |                  Off |
| 30%   60C    P2   290W / 300W |  {first}MiB / 49140MiB |    100%      Default |
+-------------------------------+----------------------+----------------------+
|   1  NVIDIA RTX A6000    Off  | 00000000:02:00.0 Off |                  Off |
| 30%   60C    P2   290W / 300W |     11MiB / 49140MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
|    0   N/A  N/A      4711      C   python                              90MiB |
+-----------------------------------------------------------------------------+
"""


@pytest.mark.parametrize("dated", [True, False])
def test_nvidia_smi_screens(tmp_path: Path, dated: bool) -> None:
    dates = [f"Sat Nov 21 {_clock(5 * i)} 2026" if dated else "" for i in range(N)]
    text = "".join(SCREEN.format(date=date, first=1000 + i) for i, date in enumerate(dates))
    recording = read_log(tmp_path, text)
    assert [s.process for s in recording.series] == ["gpu 0", "gpu 1"]
    first, second = recording.series
    assert first.role is Role.DEVICE
    assert first.y.tolist() == [(1000 + i) * MIB for i in range(N)]
    assert set(second.y.tolist()) == {11 * MIB}
    assert np.diff(first.x).tolist() == [5.0 if dated else 1.0] * (N - 1)


def test_cores_are_no_memory_whatever_their_cells_look_like(tmp_path: Path) -> None:
    text = "NAME      CPU(cores)   MEMORY(bytes)\n" + "".join(f"a 990m {i}Mi\n" for i in range(N))
    (series,) = read_log(tmp_path, text).series
    assert (series.metric, series.y[-1]) == ("memory_bytes", (N - 1) * MIB)


def test_free_in_a_loop(tmp_path: Path) -> None:
    block = (
        "               total        used        free      shared  buff/cache   available\n"
        "Mem:        16000000     {}     1000000        5000     2000000     {}\n"
        "Swap:        2000000           {}     1999990\n"
    )
    text = "".join(block.format(5_000_000 + i, 9_000_000 - i, i) for i in range(N))
    recording = read_log(tmp_path, text)
    used = series_of(recording, "host_used_bytes")
    assert used.y.tolist() == [(5_000_000 + i) * KIB for i in range(N)]
    assert used.role is Role.HOST
    assert series_of(recording, "host_available_bytes").falling
    assert series_of(recording, "host_buff_cache_bytes").role is Role.CACHE
    assert series_of(recording, "swap_used_bytes").role is Role.SWAP


def test_free_in_whole_pages_is_of_a_small_machine(tmp_path: Path) -> None:
    block = "        total   used   free\nMem:    443080   {}   40000\n"
    recording = read_log(tmp_path, "".join(block.format(200000 + 4 * i) for i in range(N)))
    used = series_of(recording, "host_used_bytes")
    assert used.y.tolist() == [(200000 + 4 * i) * KIB for i in range(N)]
    assert not any("MiB" in note for note in recording.notes)


def test_free_with_units(tmp_path: Path) -> None:
    block = "        total   used   free\nMem:     15Gi   {}Gi   3.1Gi\nSwap:  0B  0B  0B\n"
    recording = read_log(tmp_path, "".join(block.format(5 + i / 10) for i in range(N)))
    assert series_of(recording, "host_used_bytes").y[0] == 5 * 2.0**30


def test_json_lines_with_nesting(tmp_path: Path) -> None:
    lines = [
        json.dumps({"step": i, "loss": 0.1, "memory": {"rss_mb": 100 + i, "gpu": {"used_mb": i}}})
        for i in range(N)
    ]
    recording = read_log(tmp_path, "\n".join(lines))
    series = series_of(recording, "memory_rss_bytes")
    assert series.y.tolist() == [(100 + i) * 1e6 for i in range(N)]
    assert series.axis.name == "step"
    assert series_of(recording, "memory_gpu_used_bytes").role is Role.DEVICE
    torn = read_log(tmp_path, "\n".join(lines)[:-5])
    assert len(torn.series[0].y) == N - 1
    assert any("torn" in note for note in torn.notes)


def test_format_can_be_forced(tmp_path: Path) -> None:
    text = "step,rss_mb\n" + "".join(f"{i},{i}\n" for i in range(N))
    assert read_log(tmp_path, text, format="csv").series
    with pytest.raises(ReadError, match="it is not of format mprof"):
        read_log(tmp_path, text, format="mprof")


@pytest.mark.parametrize("clocks", [False, True], ids=["no clock", "date"])
def test_processor_time_in_a_table_of_ps_is_no_clock(tmp_path: Path, clocks: bool) -> None:
    text = ""
    for i in range(N):
        text += f"Fri Mar  1 {_clock(i)} UTC 2024\n" if clocks else ""
        text += "USER         PID %CPU %MEM    VSZ   RSS TTY   STAT START     TIME COMMAND\n"
        text += (
            f"root        4711 99.0  1.2 2345 {1000 + i} pts/0 Rl+  12:00 00:00:10 python t.py\n"
        )
        text += "root          99  0.0  0.1 1234   456 ?     Ss   11:00 10:20:30 /bin/sh\n"
    rss = series_of(read_log(tmp_path, text), "rss_bytes", "python t.py")
    assert rss.y.tolist() == [(1000 + i) * KIB for i in range(N)]
    assert rss.axis.kind is (AxisKind.SECONDS if clocks else AxisKind.TICK)
    assert rss.x.tolist() == list(range(N))


def _pmval(metric: str, units: str, rows: str) -> str:
    above = f"metric:    {metric}\nhost:      db1\nsemantics: instantaneous value\n"
    return f"\n{above}units:     {units}\nsamples:   all\n{rows}"


def test_pmval_without_times_and_without_a_value(tmp_path: Path) -> None:
    rows = "".join(f"{'?' if i == 4 else 900 + i:>22}\n" for i in range(N))
    recording = read_log(tmp_path, _pmval("mem.util.used", "Kbyte", rows))
    (used,) = recording.series
    assert used.axis.kind is AxisKind.TICK
    assert used.y[~np.isnan(used.y)].tolist() == [(900 + i) * KIB for i in range(N) if i != 4]


def test_pmval_of_a_rate_is_no_memory(tmp_path: Path) -> None:
    rows = "".join(f"12:00:{i:02d}.101 {900 + i:>22}\n" for i in range(N))
    unit = "Kbyte (converting to Kbyte / sec)"
    with pytest.raises(ReadError, match="looks like memory"):
        read_log(tmp_path, _pmval("mem.vmstat.pgpgin", unit, rows))
