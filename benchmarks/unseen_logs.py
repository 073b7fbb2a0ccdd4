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
by c0ddc9b8 of the twenty-fourth three, by 5565c441 of the twenty-fifth three.
Those up to the ninth were to avoid the forms that had been tried; the others are in the forms that
their authors take for the most common. Of those that were cut off, a third of the first, a quarter
of the second, 2 of the 27 of the third, 3 of those of the fourth, 3 of those of the fifth, one of
those of the sixth, one of those of the seventh, 3 of those of the eighth, 2 of those of the ninth,
2 of those of the tenth, none of the eleventh to fifteenth and of the eighteenth, 3 of the
sixteenth, 4 of the seventeenth, 2 of the nineteenth, 8 of the twentieth, 4 of the twenty-first, 2
of the twenty-second, 3 of the twenty-third, 3 of the twenty-fourth and 3 of the twenty-fifth grow
evenly to their end, as a leak does. A log that is refused counts as left open.
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
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from _rows import Row, at_least, at_most, missed, table

import memdiag
from memdiag.errors import MemdiagError
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Verdict

LOGS = Path(__file__).parent.parent / "fixtures" / "unseen_logs"
FIRST_RUN = LOGS / "first_run.json"
FEW_READINGS = 10
# A value in MB may be one of 2^20 or of 10^6 bytes.
ALIKE = 0.1
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


def rows_of(on: str, truths: Mapping[str, dict[str, Any]], results: Said) -> list[Row]:
    """Figures with their bars."""
    counts = Counter((truths[name]["truth"], verdict) for name, (verdict, _) in results.items())
    of = Counter(truths[name]["truth"] for name in results)
    leaks = [name for name in results if truths[name]["truth"] == "leak"]
    long = [name for name in leaks if truths[name]["readings"] >= FEW_READINGS]
    found = sum(results[name][0] == "leak" for name in long)
    missed_leaks = counts["leak", "stable"] + counts["leak", "warmup"]
    left = counts["bounded", "inconclusive"] + counts["bounded", REFUSED]
    rows = [
        at_most(on, "LEAK on bounded logs", counts["bounded", "leak"], of["bounded"], 0.017),
        at_most(on, "LEAK on logs that were cut off", counts["cut", "leak"], of["cut"], 0.07),
        at_most(on, "leaks called STABLE or WARMUP", missed_leaks, of["leak"], 0.035),
        at_least(on, "leaks of ten and more readings found", found, len(long), 0.85),
        at_most(on, "bounded logs left open", left, of["bounded"], 0.17),
    ]
    refused = sum(verdict == REFUSED for verdict, _ in results.values())
    unread = sum(not is_read for _, is_read in results.values()) - refused
    for figure, part in (("refused", refused), ("column that counts not read", unread)):
        value = f"{part}/{len(results)}"
        rows.append(Row(on=on, figure=figure, value=value, bar="", good=None))
    return rows


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
    for corpus, log, truth in every_log():
        key = f"{corpus}/{log.name}"
        truths[key], now[key] = truth, said(log, truth)
    first = json.loads(FIRST_RUN.read_text(encoding="utf-8"))
    if "--first" in sys.argv:  # of corpora that are new
        first = {**now, **first}
        FIRST_RUN.write_text(
            json.dumps(first, ensure_ascii=False, indent=0) + "\n", encoding="utf-8"
        )
    rows = rows_of("all, now", truths, now)
    for corpora, keys in rounds(truths).items():
        rows += rows_of(f"{corpora}, first run", truths, {key: first[key] for key in keys})
        rows += rows_of(f"{corpora}, now", truths, {key: now[key] for key in keys})
    print(table(rows))
    print("\nNot as in truth, or otherwise than in the first run:\n")
    print("| log | truth | first run | now |\n|---|---|---|---|")
    for key, truth in truths.items():
        verdicts = first[key][0], now[key][0]
        if len(set(verdicts)) > 1 or verdicts[1] not in RIGHT[truth["truth"]]:
            print(f"| `{key}` | {truth['truth']} | {verdicts[0]} | {verdicts[1]} |")
    return int(missed(rows))


if __name__ == "__main__":
    sys.exit(main())
