"""Every process of a tree is stable, and they are nearly all of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.measurements import Role, Series, Unit
from memdiag.values.verdict import Side, Verdict


def workers(readings: int) -> list[Series]:
    """Eight loaders of 250 MB, one after the other of which takes two megabytes, once."""
    late = [40 + 95 * number for number in range(8)]
    levels = [250 * MB + 2 * MB * (np.arange(readings) >= at) for at in late]
    return [
        every(1, noisy(y, 1e-5, number), process=f"DataLoader worker {number}")
        for number, y in enumerate(levels)
    ]


def tree(parts: list[Series], more: float) -> Series:
    """All of them, and what is in none."""
    return every(1, more + np.sum([part.y for part in parts], axis=0), process="tree")


def test_a_tree_of_stable_processes_is_no_leak() -> None:
    """Their buffers grow once each, at different times."""
    parts = workers(800)
    found = asked("stable_processes", tree(parts, 0.0), *parts)
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.LEAK)


def test_a_tree_with_as_much_beside_them_is_one() -> None:
    """Helpers of which nothing else is known have a third of it."""
    parts = workers(800)
    found = asked("stable_processes", tree(parts, 1e9), *parts)
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_a_doubt_about_a_tree_of_stable_processes_is_none() -> None:
    """Three of the loaders have taken theirs, and the next may come."""
    parts = workers(300)
    found = asked("stable_processes", tree(parts, 0.0), *parts)
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)


EPOCH, EPOCHS, PACE_S = 100, 6, 0.05


def replaced(larger: float, grows: float = 0.0) -> list[Series]:
    """A training of six epochs with two loaders that each epoch starts anew.

    larger: bytes by which each loader is larger than the one before it. grows: bytes a step.
    """
    x = np.arange(float(EPOCH * EPOCHS))
    epoch = x // EPOCH
    main = of_job("main", 400 * MB + np.zeros(x.size), 1)
    loaders = [
        of_job(
            f"DataLoader worker {number}",
            300 * MB + larger * epoch + grows * (x % EPOCH),
            2 + number,
            generation=epoch.astype(int),
        )
        for number in range(2)
    ]
    number = every(
        1, np.full(x.size, 3.0), role=Role.PROCESSES, metric="processes", unit=Unit.COUNT
    )
    return [main, *loaders, replace(number, process="tree", at_s=PACE_S * x)]


def of_job(process: str, y: np.ndarray, seed: int, **more: object) -> Series:
    at_s = PACE_S * np.arange(len(y))
    return every(1, noisy(y, 1e-5, seed), process=process, at_s=at_s, **more)


def tree_of(parts: list[Series]) -> Series:
    return of_job("tree", np.sum([part.y for part in parts[:3]], axis=0), 0)


def test_loaders_that_each_epoch_starts_anew_make_no_leak() -> None:
    """Each has a megabyte more of the pages of its parent, which does not grow."""
    parts = replaced(2 * MB)
    found = asked("stable_processes", tree_of(parts), *parts)
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.LEAK)
    assert found.of_first == (Verdict.STABLE, Verdict.LEAK)


def test_loaders_that_are_larger_each_time_may_be_one() -> None:
    """What outlives them grows, and is in none of the other processes."""
    parts = replaced(20 * MB)
    assert asked("stable_processes", tree_of(parts), *parts).verdicts[0] is Verdict.LEAK


def test_a_parent_that_grows_beside_new_loaders_leaks() -> None:
    main, *others = replaced(1 * MB)
    grown = replace(main, y=main.y + 0.2 * MB * np.arange(len(main.y)))
    parts = [grown, *others]
    assert asked("stable_processes", tree_of(parts), *parts).verdicts[0] is Verdict.LEAK


def test_loaders_that_grow_until_their_epoch_ends_add_nothing() -> None:
    parts = replaced(2 * MB, grows=0.05 * MB)
    assert asked("stable_processes", tree_of(parts), *parts).verdicts[0] is not Verdict.LEAK


def test_a_loader_that_has_grown_since_the_last_one_ended_leaks() -> None:
    main, *loaders, number = replaced(0.0)
    late = np.arange(len(main.y)) - 2 * EPOCH
    loaders = [
        replace(
            loader,
            y=loader.y + 0.5 * MB * np.maximum(late, 0),
            generation=np.minimum(loader.generation, 2),
        )
        for loader in loaders
    ]
    parts = [main, *loaders, number]
    assert asked("stable_processes", tree_of(parts), *parts).verdicts[0] is Verdict.LEAK
