"""The tags do nothing without memdiag, and never raise with it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import memdiag
from memdiag.capture.probelink.channel import ChannelReader
from memdiag.probe.session import Session


@pytest.fixture
def phases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The phases of the events, filled when the test calls its `extend`."""
    probe = ModuleType("_memdiag_probe")
    probe.listener = Session(str(tmp_path))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "_memdiag_probe", probe)
    reader = ChannelReader(tmp_path)

    class Phases(list[str]):
        def seen(self) -> list[str]:
            return [event.phase for event in reader.drain()]

    yield Phases()
    reader.close()


@pytest.mark.parametrize("bad", ["abc", None, float("nan"), object()])
def test_tags_without_a_listener_do_nothing_whatever_they_get(bad: object) -> None:
    memdiag.step(bad)  # type: ignore[arg-type]
    memdiag.counter(bad, bad)  # type: ignore[arg-type]
    with memdiag.phase(bad):  # type: ignore[arg-type]
        pass


def test_phase_lets_errors_pass(phases) -> None:
    with pytest.raises(KeyError), memdiag.phase("train"):
        raise KeyError
    assert phases.seen() == ["train", ""]


def test_phase_may_be_used_again_and_inside_itself(phases) -> None:
    phase = memdiag.phase("a")
    with phase, phase:
        pass
    with phase:
        pass
    assert phases.seen() == ["a", "a/a", "a", "", "a", ""]


def test_decorated_function_is_a_phase_and_stays_itself(phases) -> None:
    @memdiag.phase("eval")
    def evaluate(x: int, *, scale: int = 1) -> int:
        """Documented."""
        memdiag.step(x)
        return x * scale

    assert evaluate(3, scale=2) == 6
    assert (evaluate.__name__, evaluate.__doc__) == ("evaluate", "Documented.")
    assert phases.seen() == ["eval", "eval", ""]


def test_decorated_generator_is_in_the_phase_while_it_runs(phases) -> None:
    @memdiag.phase("data")
    def batches() -> Iterator[int]:
        memdiag.step(1)
        yield 1

    made = batches()
    memdiag.step(0)
    assert list(made) == [1]
    assert phases.seen() == ["", "data", "data", ""]


def test_decorated_coroutines_are_in_the_phase_while_they_run(phases) -> None:
    @memdiag.phase("fetch")
    async def fetch() -> int:
        await asyncio.sleep(0)
        memdiag.step(1)
        return 5

    @memdiag.phase("stream")
    async def stream() -> AsyncIterator[int]:
        memdiag.step(2)
        yield await fetch()

    async def main() -> list[int]:
        return [item async for item in stream()]

    assert asyncio.run(main()) == [5]
    assert phases.seen() == ["stream", "stream", "stream/fetch", "stream/fetch", "stream", ""]


def test_import_of_the_package_loads_nothing_else() -> None:
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import memdiag\n"
        "print(sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['memdiag', 'memdiag.tags']"


def test_every_python_imports_the_package_for_its_tags(any_python: str, tmp_path: Path) -> None:
    """Where the target's Python has no memdiag, `memdiag run` brings this package along."""
    root = Path(memdiag.__file__).parents[1]
    program = f"import sys; sys.path.append({str(root)!r}); import memdiag; memdiag.step(1)"
    done = subprocess.run(
        [any_python, "-W", "error", "-c", f"{program}; print(dir(memdiag))"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "'analyze'" in done.stdout
