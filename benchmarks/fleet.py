"""How fast many recordings are judged, and what grows with their number.

    python benchmarks/fleet.py [--counts N ...] [--kind parquet|csv] [--engines ...] [--seed S]

Recordings of 1,000 samples of six series. CPU seconds of a recording in a warm worker; recordings
per second of CPU (of the driver and two workers once all is imported, with a file of results) and
the peak memory of the driver for each count; the second call, for which nothing has changed; how
much faster two workers are than one; and what each engine adds to a call that judges nothing (names
without files). Fails where a bar is missed. Only what is per second, the efficiency and the
overhead are by the clock, and want a machine that does nothing else.

Everything, in an environment with all engines (`make engines` makes .venv-engines): a quarter of an
hour on two cores, 2 GB of disk.

    python benchmarks/fleet.py --counts 1000 10000 100000 --efficiency local dask \
        --engines local dask ray spark
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import _fleets
from _rows import Row, missed, table

MOST_CPU_S, MOST_SPREAD, MOST_GROWTH_BYTES, LEAST_EFFICIENCY = 10e-3, 0.15, 50e6, 1.8
_MIB = 1024
# In a process of its own, whose peak memory is the driver's.
_DRIVER = """
import json, resource, statistics, sys, time
from pathlib import Path
from memdiag.fleet import engines, run
from memdiag.fleet.judge_file import How
from memdiag.fleet.paths import paths
from memdiag.fleet.results_file import ResultsFile
from memdiag.fleet.summarize import summarize

if __name__ == "__main__":
    engine, jobs, results, *arguments = sys.argv[1:]
    began_s = time.perf_counter()
    chosen = engines.named(engine, jobs=int(jobs))
    first_s = []
    with ResultsFile(Path(results) if results else None) as kept:
        now = lambda: (time.perf_counter(), time.process_time())
        progress = lambda number: first_s.extend(now()) if number == 1 else None
        run.judge_into(kept, paths(arguments), chosen, How(), progress)
        summary = summarize(kept)
        each_s = [one for (one,) in kept.database.execute("SELECT cpu_s FROM recordings")]
    ended_s, driver_s = now()
    first_s = first_s or [began_s, 0.0]
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({
        "wall_s": ended_s - began_s,
        "warm_s": ended_s - first_s[0],
        "warm_cpu_s": statistics.median(each_s) + (driver_s - first_s[1]) / len(each_s),
        "all_cpu_s": sum(one.ru_utime + one.ru_stime for one in used),
        "recordings": summary.recordings,
        "counts": dict(summary.counts),
        "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }))
"""


def driver(
    folder: Path, engine: str, jobs: int, results: Path | str, *arguments: str
) -> dict[str, float]:
    """What a driver in a process of its own has measured."""
    script = folder / "driver.py"
    script.write_text(_DRIVER)
    command = [sys.executable, str(script), engine, str(jobs), str(results), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def warm_cpu_s(paths: list[Path]) -> float:
    """CPU seconds of a recording in a warm worker: the median of ten calls of all."""
    from memdiag.fleet.judge_file import How, Task, judge_files, start_worker

    start_worker()
    tasks = [Task(path=str(path)) for path in paths]
    judge_files(tasks, How())
    return statistics.median(judge_files(tasks, How())[0].cpu_s for _ in range(10))


def scaling(folder: Path, counts: list[int], options: argparse.Namespace) -> list[Row]:
    """Recordings per second, and the peak memory of the driver, for each count."""
    rows, rates, peaks = [], [], []
    for count in counts:
        place = folder / str(count)
        _fleets.write(place, count, kind=options.kind, seed=options.seed)
        pattern, results = f"{place}/**/*.{options.kind}", folder / f"{count}.sqlite"
        found = driver(folder, "local", 2, results, pattern)
        assert found["recordings"] == count
        again = driver(folder, "local", 2, results, pattern)
        rates.append(1 / found["warm_cpu_s"])
        peaks.append(found["peak_kib"] * _MIB)
        on = f"{count:,} recordings"
        rows += [
            Row(on=on, figure="per second of CPU", value=f"{rates[-1]:.0f}", bar="", good=None),
            Row(
                on=on,
                figure="per second, two workers",
                value=f"{count / found['wall_s']:.0f}",
                bar="",
                good=None,
            ),
            Row(on=on, figure="driver", value=f"{peaks[-1] / 1e6:.0f} MB", bar="", good=None),
            Row(
                on=on,
                figure="unchanged ones per second of CPU",
                value=f"{count / again['all_cpu_s']:,.0f}",
                bar="",
                good=None,
            ),
        ]
        print(*(f"{row.on}: {row.value} {row.figure}" for row in rows[-4:]), sep="\n", flush=True)
        shutil.rmtree(place)
    spread = 1 - min(rates) / max(rates)
    growth = max(peaks) - min(peaks)
    return [
        *rows,
        Row(
            on="all counts",
            figure="spread of the rate",
            value=f"{spread:.0%}",
            bar=f"<= {MOST_SPREAD:.0%}",
            good=spread <= MOST_SPREAD,
        ),
        Row(
            on="all counts",
            figure="growth of the driver",
            value=f"{growth / 1e6:.0f} MB",
            bar=f"<= {MOST_GROWTH_BYTES / 1e6:.0f} MB",
            good=growth <= MOST_GROWTH_BYTES,
        ),
    ]


def kept_per_s(folder: Path, paths: list[Path]) -> float:
    """Results that a driver can take from its workers and keep in a second."""
    import pickle
    from dataclasses import replace

    from memdiag.fleet.judge_file import How, Task, judge_files
    from memdiag.fleet.results_file import ResultsFile

    results = judge_files([Task(path=str(path)) for path in paths], How())
    sent = [pickle.dumps(results[at : at + 8]) for at in range(0, len(results), 8)]
    count = 0
    with ResultsFile(folder / "kept.sqlite") as kept:
        began_s = time.perf_counter()
        for turn in range(40):
            for one in (one for data in sent for one in pickle.loads(data)):
                kept.add(replace(one, path=f"{turn}-{one.path}"), "")
                count += 1
        return count / (time.perf_counter() - began_s)


def efficiency(folder: Path, engine: str, pattern: str) -> Row:
    """How much faster two workers are than one."""
    one, two = (driver(folder, engine, jobs, "", pattern)["warm_s"] for jobs in (1, 2))
    return Row(
        on=f"{engine}, 1,000 recordings",
        figure="2 workers over 1",
        value=f"{one / two:.2f}x",
        bar=f">= {LEAST_EFFICIENCY}x",
        good=one / two >= LEAST_EFFICIENCY,
    )


def overhead(folder: Path, engine: str) -> list[Row]:
    """What an engine takes for 1,000 recordings that are not there, and to start and end."""
    names = folder / "names.txt"
    names.write_text("".join(f"/nowhere/{number}.csv\n" for number in range(1000)))
    began_s = time.perf_counter()
    found = driver(folder, engine, 1, "", f"@{names}")
    whole_s = time.perf_counter() - began_s
    on = f"{engine}, 1,000 names"
    return [
        Row(on=on, figure="overhead", value=f"{found['warm_s']:.2f} s", bar="", good=None),
        Row(
            on=on,
            figure="start and end",
            value=f"{whole_s - found['warm_s']:.1f} s",
            bar="",
            good=None,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--counts", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--kind", default="parquet")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engines", nargs="*", default=["local"])
    parser.add_argument("--efficiency", nargs="*", default=["local"])
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few = _fleets.write(folder / "few", 100, kind=options.kind, seed=options.seed)
        cpu_s = warm_cpu_s(few)
        rows.append(
            Row(
                on=f"a recording ({options.kind})",
                figure="CPU in a warm worker",
                value=f"{cpu_s * 1e3:.1f} ms",
                bar=f"<= {MOST_CPU_S * 1e3:.0f} ms",
                good=cpu_s <= MOST_CPU_S,
            )
        )
        kept = f"{kept_per_s(folder, few):,.0f}"
        rows.append(Row(on="driver", figure="results per second", value=kept, bar="", good=None))
        if options.counts:
            rows += scaling(folder, options.counts, options)
        if options.efficiency:
            _fleets.write(folder / "1k", 1000, kind=options.kind, seed=options.seed)
        for engine in options.efficiency:
            rows.append(efficiency(folder, engine, f"{folder}/1k/**/*.{options.kind}"))
        for engine in options.engines:
            rows += overhead(folder, engine)
    print(table(rows))
    return missed(rows)


if __name__ == "__main__":
    sys.exit(main())
