"""How does memdiag judge logs that were written before anybody tried them?

    python benchmarks/unseen_logs.py
    python benchmarks/unseen_logs.py --intervals  # between readings, where their times are known

Each archive in `fixtures/unseen_logs` is a corpus of 40 logs in the forms of tools and people, with
`truths.json`: which leak, which are bounded, and which are warm-ups that were cut off while they
grew; the column that counts, its first and last value, the number of its readings. The values were
made for this; no log is of a real run. They were written without knowledge of the readers, and run
once; `first_run.json` has what was said then, before anything was mended: by a1cc463 of the first
three corpora, by 2e3b190 of the second three, by a728569 of the third three, by d57afeb of the
fourth three, by 8e948c4 of the fifth three, by 6c9f97d of the sixth three, by 634ba7e of the
seventh three, by ca0fd14 of the eighth three, by a7820c4c of the ninth three, by 0c715e5a of the
tenth three, by 1c4648c3 of the eleventh three, by d84750d4 of the twelfth three, by a6ac3b04 of the
thirteenth three, by 31b5010f of the fourteenth three, by 68306b00 of the fifteenth three, by
c1d74045 of the sixteenth three, by fbfaa8ba of the seventeenth three, by f5a3687b of the eighteenth
three, by 24506204 of the nineteenth three, by 0521b057 of the twentieth three, by b23cc5c7 of the
twenty-first three, by 4a0436b0 of the twenty-second three, by 468edc54 of the twenty-third three,
by c0ddc9b8 of the twenty-fourth three, by 5565c441 of the twenty-fifth three, by ef0f90d8 of the
twenty-sixth three, by 4a561bac of the twenty-seventh three.
Those up to the ninth were to avoid the forms that had been tried; the others are in the forms that
their authors take for the most common. Of those that were cut off, a third of the first, a quarter
of the second, 2 of the 27 of the third, 3 of those of the fourth, 3 of those of the fifth, one of
those of the sixth, one of those of the seventh, 3 of those of the eighth, 2 of those of the ninth,
2 of those of the tenth, none of the eleventh to fifteenth and of the eighteenth, 3 of the
sixteenth, 4 of the seventeenth, 2 of the nineteenth, 8 of the twentieth, 4 of the twenty-first, 2
of the twenty-second, 3 of the twenty-third, 3 of the twenty-fourth, 3 of the twenty-fifth, 10 of
the twenty-sixth and 7 of the twenty-seventh grow evenly to their end, as a leak does; 9 and 5 of
the last two state a capacity or progress. A log that is refused counts as left open.

Bars are missed if the present rules miss one on all logs, or missed one on the last corpora when
they were new. First runs of earlier corpora were by earlier rules, and stand as they were.
"""

from __future__ import annotations

import contextlib
import glob
import json
import math
import statistics
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from _rows import Row, at_least, at_most, missed, table

import memdiag
from memdiag.errors import MemdiagError
from memdiag.recording.read import read
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats

LOGS = Path(__file__).parent.parent / "fixtures" / "unseen_logs"
FIRST_RUN = LOGS / "first_run.json"
FEW_READINGS = 10
# A value in MB may be one of 2^20 or of 10^6 bytes.
ALIKE = 0.1
# Of a log that grows evenly a line explains so much, and the slowest third is so fast beside the
# fastest. Heuristic.
EVEN_R2, EVEN_THIRDS = 0.98, 0.75
REFUSED = "refused"
RIGHT = {"leak": {"leak"}, "bounded": {"stable", "warmup"}, "cut": {"inconclusive"}}

Said = dict[str, tuple[str, bool]]


def logs(archive: Path, directory: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The logs of a corpus with their truths."""
    with tarfile.open(archive) as corpus:
        corpus.extractall(directory, filter="data")
    truths = json.loads(next(directory.rglob("truths.json")).read_text(encoding="utf-8"))
    for name, truth in truths.items():
        yield next(directory.rglob(glob.escape(name))), truth


def every_log() -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """The logs of all corpora, each with the name of its corpus and its truths."""
    for archive in sorted(LOGS.glob("*.tar.xz")):
        with tempfile.TemporaryDirectory() as directory:
            for log, truth in logs(archive, Path(directory)):
                yield archive.name.removesuffix(".tar.xz"), log, truth


def said(log: Path, truth: dict[str, Any]) -> tuple[str, bool]:
    """The verdict, and whether the column that counts was read with its values."""
    try:
        found = memdiag.analyze(log)
    except MemdiagError:
        return REFUSED, False
    order = [Verdict.LEAK, Verdict.INCONCLUSIVE, Verdict.WARMUP, Verdict.STABLE]
    verdict = min((one.verdict for one in found), key=order.index)
    series = [one for recording in found for one in recording.series]
    return verdict.value, any(_has(one.start_value, one.latest_value, truth) for one in series)


def _has(first: float, last: float, truth: dict[str, Any]) -> bool:
    """Return True if the values are the truth's, in whatever unit."""
    if min(first, last, truth["first_bytes"], truth["last_bytes"]) <= 0:
        return False
    ratios = math.log(last / first), math.log(truth["last_bytes"] / truth["first_bytes"])
    size = abs(math.log(last / truth["last_bytes"]))
    return size < ALIKE or abs(ratios[0] - ratios[1]) < ALIKE * abs(ratios[1])


def grows_evenly(log: Path, truth: dict[str, Any]) -> bool:
    """Return True if the column that counts is a line to its end, as a leak's is."""
    try:
        series = read(str(log)).series
    except MemdiagError:
        return False
    for one in series:
        known = np.isfinite(one.x) & np.isfinite(one.y)
        x, y = one.x[known], one.y[known]
        if len(y) > 3 and _has(float(y[0]), float(y[-1]), truth):
            return _is_even(x, y)
    return False


def _is_even(x: Floats, y: Floats) -> bool:
    rises = np.diff(np.interp(np.linspace(x[0], x[-1], 4), x, y))
    slowest, fastest = sorted((abs(rises.min()), abs(rises.max())))
    r2 = np.corrcoef(x, y)[0, 1] ** 2
    return bool(
        rises.min() * rises.max() > 0 and slowest >= EVEN_THIRDS * fastest and r2 >= EVEN_R2
    )


def rows_of(
    on: str, truths: Mapping[str, dict[str, Any]], results: Said, even: Collection[str]
) -> list[Row]:
    """Figures with their bars. even: the logs that were cut off and grow evenly."""
    counts = Counter((truths[name]["truth"], verdict) for name, (verdict, _) in results.items())
    of = Counter(truths[name]["truth"] for name in results)
    leaks = [name for name in results if truths[name]["truth"] == "leak"]
    long = [name for name in leaks if truths[name]["readings"] >= FEW_READINGS]
    found = sum(results[name][0] == "leak" for name in long)
    missed_leaks = counts["leak", "stable"] + counts["leak", "warmup"]
    left = counts["bounded", "inconclusive"] + counts["bounded", REFUSED]
    lines = [name for name in results if name in even]
    of_lines = sum(results[name][0] == "leak" for name in lines)
    of_others = counts["cut", "leak"] - of_lines
    rows = [
        at_most(on, "LEAK on bounded logs", counts["bounded", "leak"], of["bounded"], 0.017),
        at_most(on, "LEAK on logs that were cut off", counts["cut", "leak"], of["cut"], 0.07),
        _without_bar(on, "of these, on those that grow evenly", of_lines, len(lines)),
        _without_bar(on, "of these, on the others", of_others, of["cut"] - len(lines)),
        at_most(on, "leaks called STABLE or WARMUP", missed_leaks, of["leak"], 0.035),
        at_least(on, "leaks of ten and more readings found", found, len(long), 0.85),
        at_most(on, "bounded logs left open", left, of["bounded"], 0.17),
    ]
    refused = sum(verdict == REFUSED for verdict, _ in results.values())
    unread = sum(not is_read for _, is_read in results.values()) - refused
    for figure, part in (("refused", refused), ("column that counts not read", unread)):
        rows.append(_without_bar(on, figure, part, len(results)))
    return rows


def _without_bar(on: str, figure: str, part: int, whole: int) -> Row:
    return Row(on=on, figure=figure, value=f"{part}/{whole}", bar="", good=None)


def rounds(keys: Iterable[str]) -> dict[str, list[str]]:
    """The logs by the round in which their corpora were written: `everyday`, then `everyday_2`."""
    found: dict[str, list[str]] = {}
    for key in keys:
        number = key.partition("/")[0].partition("_")[2] or "1"
        found.setdefault(f"round {number}", []).append(key)
    return found


def intervals_s() -> dict[str, list[float]]:
    """Seconds from one reading to the next on average, of the logs with times, by kind of corpus:
    `everyday`, `monitoring`, `pasted`.
    """
    found: dict[str, list[float]] = {}
    for corpus, log, _ in every_log():
        with contextlib.suppress(MemdiagError):
            one = next(iter(memdiag.analyze(log))).series[0]
            if one.axis.kind is AxisKind.SECONDS and one.samples > 1:
                interval_s = (one.last_x - one.first_x) / (one.samples - 1)
                found.setdefault(corpus.partition("_")[0], []).append(interval_s)
    return found


def main() -> int:
    if "--intervals" in sys.argv:
        print("| logs | with times | a quarter, half, three quarters below (s) |\n|---|---|---|")
        for kind, values in intervals_s().items():
            quarters = ", ".join(f"{one:.0f}" for one in statistics.quantiles(values, n=4))
            print(f"| {kind} | {len(values)} | {quarters} |")
        return 0
    truths: dict[str, dict[str, Any]] = {}
    now: Said = {}
    even: set[str] = set()
    for corpus, log, truth in every_log():
        key = f"{corpus}/{log.name}"
        truths[key], now[key] = truth, said(log, truth)
        if truth["truth"] == "cut" and grows_evenly(log, truth):
            even.add(key)
    first = json.loads(FIRST_RUN.read_text(encoding="utf-8"))
    if "--first" in sys.argv:  # of corpora that are new
        first = {**now, **first}
        FIRST_RUN.write_text(
            json.dumps(first, ensure_ascii=False, indent=0) + "\n", encoding="utf-8"
        )
    rows = rows_of("all, now", truths, now, even)
    counted = rows[:]
    by_round = rounds(truths)
    newest = max(by_round, key=lambda corpora: int(corpora.split()[-1]))
    for corpora, keys in by_round.items():
        new = rows_of(f"{corpora}, first run", truths, {key: first[key] for key in keys}, even)
        counted += new if corpora == newest else []
        rows += new
        rows += rows_of(f"{corpora}, now", truths, {key: now[key] for key in keys}, even)
    print(table(rows))
    print("\nNot as in truth, or otherwise than in the first run:\n")
    print("| log | truth | first run | now |\n|---|---|---|---|")
    for key, truth in truths.items():
        verdicts = first[key][0], now[key][0]
        if len(set(verdicts)) > 1 or verdicts[1] not in RIGHT[truth["truth"]]:
            print(f"| `{key}` | {truth['truth']} | {verdicts[0]} | {verdicts[1]} |")
    return int(missed(counted))


if __name__ == "__main__":
    sys.exit(main())
