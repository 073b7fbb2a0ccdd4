"""`memdiag.explain()` where the packages that memdiag needs are missing.

Such an interpreter runs the program of `memdiag run`, whose probe needs none. Python 3.8 syntax.
"""

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_SUFFIX, _CENSUS_SUFFIX = ".ring", ".census"
_MOST = 10
_LONGEST = 100


class PlainExplanation:
    """What is in memory, as the probe alone can say it. Its `repr` is a report.

    census: the largest tensors and arrays, and objects by type, as the probe has counted them;
    empty without a probe. missing: why memdiag itself cannot explain it.
    """

    def __init__(self, census: "dict[str, Any]", missing: str) -> None:
        self.census = census
        self.missing = missing

    def __repr__(self) -> str:
        return "\n".join([*_lines(self.census), self.missing])


def explanation_for(error: Exception) -> "Callable[[], PlainExplanation]":
    """What stands for `memdiag.explain` if its import has failed."""
    missing = (
        f"memdiag.explain() needs memdiag's packages in this environment: {error}. "
        "The report of memdiag run has holders and growth."
    )

    def explain() -> PlainExplanation:
        """What is in memory in this process. Never raises."""
        try:
            census = _census()
        except Exception as failure:
            census, why = {}, f"The memory was not counted: {type(failure).__name__}. "
        else:
            why = "" if census else "The probe has taken no census. "
        return PlainExplanation(census, why + missing)

    return explain


def _census() -> "dict[str, Any]":
    session: Any = getattr(sys.modules.get("_memdiag_probe"), "listener", None)
    if getattr(session, "take_census", None) is None:
        return {}
    session.take_census()
    path = session.ring_path()[: -len(_SUFFIX)] + _CENSUS_SUFFIX
    with open(path, encoding="ascii") as file:  # noqa: PTH123 (written by this process)
        found: dict[str, Any] = json.load(file)["censuses"][-1]
    return found


def _lines(census: "dict[str, Any]") -> "Iterator[str]":
    for one in sorted(census.get("groups", ()), key=lambda one: -one["bytes"])[:_MOST]:
        names = [str(name) for _, name, *_ in one["path"] if name]
        where = " ".join(names) or "no name was found"
        shape = "x".join(map(str, one["shape"]))
        what = f"{one['count']:,.0f} {one['type']} {shape} {one['dtype']}".rstrip()
        yield f"{what}: {one['bytes'] / 1e6:,.1f} MB, {where}"[:_LONGEST]
    for name, count, size in census.get("types", ())[:_MOST]:
        yield f"{count:,} {name} objects: {size / 1e6:,.1f} MB"[:_LONGEST]
