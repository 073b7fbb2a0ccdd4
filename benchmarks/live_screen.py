"""What the live screen costs after a long run.

    python benchmarks/live_screen.py [--samples 1000000] [--seconds 20] [--processes 4]

The process of the screen draws on a pseudo-terminal of each size, and gets what a run at 10 Hz
sends, as often as it does then. The figures are parts of one core: CPU time (user + system) of that
process over wall time, and CPU time that memdiag itself takes to make and send the frames. Fails
above 1% for both together.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import signal
import struct
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from memdiag.screen import process
from memdiag.screen.messages import About, Frame, Link, Order, frame_every_s, pair
from memdiag.values.findings import Finding, Interval
from memdiag.values.measurements import Axis, AxisKind, Role, Sample, Unit
from memdiag.values.verdict import Reason, Verdict

BAR = 0.01
_SIZES = ((60, 20), (80, 24), (200, 60))
_HZ = 10


def samples(first: int, count: int, processes: int) -> Iterator[Sample]:
    """`count` samples of a job whose memory grows a little at each step."""
    for tick in range(first, first + count // (processes + 1) + 1):
        rss = 10**9 + 1000 * tick + 10**5 * (tick % 7)
        readings: dict[str, int | float] = {
            "rss_bytes": rss,
            "pss_bytes": rss - 10**6,
            "tensors": 100 + tick % 9,
        }
        phase = "train" if tick % 50 else "eval"
        for rank in range(processes):
            yield Sample(tick / _HZ, 100 + rank, f"rank{rank}", readings, tick, phase)
        yield Sample(tick / _HZ, 100, "tree", readings, tick, phase)


def finding(process_name: str, last: int) -> Finding:
    """What was found so far, as the live verdict has it."""
    return Finding(
        metric="rss_bytes",
        column="rss_bytes",
        process=process_name,
        role=Role.RESIDENT,
        unit=Unit.BYTES,
        axis=Axis(name="step", kind=AxisKind.STEP),
        verdict=Verdict.LEAK,
        confidence=0.9,
        reason=Reason.REGULAR_GROWTH,
        samples=last,
        first_x=0.0,
        last_x=float(last),
        start_value=1e9,
        latest_value=1e9 + 1000 * last,
        peak_value=1e9 + 1000 * last,
        segments=(),
        growth_per_x=Interval.around(1000.0, 10.0),
        growth_per_s=Interval.around(10000.0, 100.0),
        plateau=None,
        onset_x=Interval.around(100.0, 1.0),
        forecasts=(),
        limit_hits=(),
        need_more=None,
        phases=(),
        trace=(),
    )


def screen_process(size: tuple[int, int]) -> tuple[int, Link, int]:
    """The screen on a pseudo-terminal of this size: its pid, our end of its link, the terminal."""
    ours, theirs = pair()
    said = tempfile.TemporaryFile()  # noqa: SIM115
    pid, terminal = pty.fork()
    if pid == 0:
        ours.close()
        about = About(
            title="python train.py", is_ours=True, can_stop=True, ascii_only=False, directory="/"
        )
        descriptors = process.Descriptors(
            terminal=os.open("/dev/tty", os.O_RDWR), copies=(), said=said.fileno()
        )
        os.environ["TERM"] = "xterm-256color"
        process.live(theirs, descriptors, about, os.getpgrp())
        os._exit(0)
    theirs.close()
    columns, rows = size
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    threading.Thread(target=_drain, args=(terminal,), daemon=True).start()
    return pid, ours, terminal


def _drain(terminal: int) -> None:
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:
        pass


def cpu_s(pid: int) -> float:
    """CPU time of a process, of all of its threads."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((one / "schedstat").read_text().split()[0]) for one in threads) / 1e9


def send(link: Link, message: Frame | Order) -> None:
    """Send it, and wait until all has been taken: no sample may be dropped here."""
    link.send(message)
    while link.waiting:
        time.sleep(0.001)
        link.flush()


def measure(size: tuple[int, int], count: int, processes: int, seconds: float) -> float:
    """The part of a core that the screen takes after `count` samples, with sending."""
    pid, link, terminal = screen_process(size)
    batch: list[Sample] = []
    for sample in samples(0, count, processes):
        batch.append(sample)
        if len(batch) == 50:
            send(link, Frame(samples=tuple(batch)))
            batch = []
    first = count // (processes + 1) + 1
    send(link, Order.SHOW)
    time.sleep(5.0)  # its start
    every_s = frame_every_s(first / _HZ)
    ticks = round(_HZ * every_s)
    before_s, began_s, sending_s, at = cpu_s(pid), time.monotonic(), 0.0, first
    while time.monotonic() - began_s < seconds:
        sent_s = time.thread_time()
        found = finding("tree", at)
        link.send(
            Frame(
                samples=tuple(samples(at, (ticks - 1) * (processes + 1), processes)),
                elapsed_s=at / _HZ,
                found=found,
                cpu_s=1.0,
                is_whole=True,
            )
        )
        sending_s += time.thread_time() - sent_s
        at += ticks
        time.sleep(every_s)
    wall_s = time.monotonic() - began_s
    drawing, sending = (cpu_s(pid) - before_s) / wall_s, sending_s / wall_s
    print(
        f"{size[0]}x{size[1]}: drawing {drawing:.2%}, sending {sending:.2%} of a core, after"
        f" {count:,} samples",
        flush=True,
    )
    link.close()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(terminal)
    return drawing + sending


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--processes", type=int, default=4)
    given = parser.parse_args()
    shares = [measure(size, given.samples, given.processes, given.seconds) for size in _SIZES]
    return int(max(shares) > BAR)


if __name__ == "__main__":
    raise SystemExit(main())
