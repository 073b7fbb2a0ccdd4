"""What a live screen may know, made from readings."""

from __future__ import annotations

from collections.abc import Callable

from memdiag.analysis.live.sequential import LiveVerdict
from memdiag.screen.messages import About, Frame
from memdiag.screen.view import View
from memdiag.values.measurements import Limit, Role, Sample

RAM = Limit(name="host RAM", value_bytes=16 * 10**9, roles=frozenset({Role.RESIDENT, Role.IN_USE}))


def leaking(tick: int) -> float:
    return 1e9 + 1e6 * tick


def flat(tick: int) -> float:
    return 1e9 + 1e5 * (tick % 2)


def view_of(
    memory: Callable[[int], float] = leaking,
    *,
    metric: str = "rss_bytes",
    ticks: int = 300,
    processes: tuple[str, ...] = ("main",),
    phase: str = "",
    ascii_only: bool = False,
    is_ours: bool = True,
    copies: tuple[int, ...] = (),
    title: str = "python train.py",
) -> View:
    """A job whose processes each have this memory at each step, ten steps a second."""
    found = About(title=title, is_ours=is_ours, can_stop=True, ascii_only=ascii_only, directory="/")
    view, live = View(found, copies), LiveVerdict(limits=lambda: (RAM,))
    for tick in range(ticks):
        rows = [
            Sample(tick / 10, 100 + at, name, {metric: memory(tick)}, tick, phase)
            for at, name in enumerate(processes)
        ]
        total = {"rss_bytes": memory(tick) * len(processes)}
        rows.append(Sample(tick / 10, 100, "tree", total, tick, phase))
        for row in rows:
            live.add(row)
        view.take(Frame(samples=tuple(rows)))
    series = tuple(live.findings().values())
    view.take(
        Frame(
            elapsed_s=ticks / 10,
            found=live.finding(),
            series=series,
            limits=(RAM,),
            cpu_s=0.1,
            is_whole=True,
        )
    )
    return view
