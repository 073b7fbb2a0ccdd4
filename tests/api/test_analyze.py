"""`memdiag.analyze` and `memdiag.compare`: the numbers of the command line, in types."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from commandline import called

import memdiag
from memdiag.api.diagnosis import Diagnosis
from memdiag.values.findings import Interval

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
LEAK, STABLE = RUNS / "burn_hybrid.csv", RUNS / "burn_baseline.csv"


def numbers(found: Diagnosis) -> list[object]:
    """What does not depend on the names of the source."""
    series = found.to_dict()["recordings"][0]["series"]
    for one in series:
        del one["axis"]["name"], one["column"]
    return series


@pytest.mark.parametrize("path", sorted(RUNS.glob("*.csv")), ids=lambda path: path.stem)
def test_diagnosis_is_that_of_the_command_line(path: Path) -> None:
    document = json.loads(called("analyze", "--json", path).stdout)
    del document["exit_code"]
    found = memdiag.analyze(path)
    assert json.loads(json.dumps(found.to_dict())) == document
    assert found.verdict == document["verdict"]
    assert found.confidence == document["recordings"][0]["confidence"]


def test_attributes_of_a_leak() -> None:
    found = memdiag.analyze(LEAK)
    assert found.verdict is memdiag.Verdict.LEAK
    assert found.growth.per_step is not None
    assert found.growth.per_step.low < found.growth.per_step.bytes < found.growth.per_step.high
    assert found.growth.per_step.bytes == pytest.approx(293e6, rel=0.01)
    assert found.growth.per_second is None
    assert isinstance(found.onset, Interval)
    assert found.plateau is None
    assert found.why.endswith(".")
    with pytest.raises(FrozenInstanceError):
        found.found = None  # type: ignore[misc, assignment]
    with pytest.raises(AssertionError, match="LEAK") as raised:
        found.raise_for_leak()
    assert isinstance(raised.value, memdiag.LeakError)


def test_attributes_of_a_warmup() -> None:
    found = memdiag.analyze(RUNS / "vision_run2.csv")
    assert found.verdict == "warmup"
    assert found.plateau is not None
    assert found.plateau.low_value < found.plateau.high_value
    found.raise_for_leak()


def test_growth_of_counts_has_no_bytes() -> None:
    steps = np.arange(500)
    found = memdiag.analyze({"step": steps, "tensors": 100 + 3 * steps})
    assert found.growth.per_step is not None
    assert found.growth.per_step.value == pytest.approx(3)
    with pytest.raises(AttributeError, match="counts"):
        _ = found.growth.per_step.bytes


def test_shell_shows_three_lines() -> None:
    lines = repr(memdiag.analyze(LEAK)).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("LEAK  +293 MB per step since step 15 (")
    assert "VRAM" in lines[1]


def test_several_recordings_have_the_worst_verdict() -> None:
    found = memdiag.analyze([STABLE, LEAK])
    assert [one.verdict.name for one in found] == ["WARMUP", "LEAK"]
    assert found.verdict == "leak"
    assert found.growth == memdiag.analyze(LEAK).growth
    assert "memdiag: LEAK (1 leak and 1 warmup)" in repr(found)
    assert len(memdiag.analyze(str(RUNS / "burn_*.csv"))) == 4


def test_frames_and_dicts_are_judged_as_their_files() -> None:
    expected = numbers(memdiag.analyze(LEAK))
    frame = pl.read_csv(LEAK)
    assert numbers(memdiag.analyze(frame)) == expected
    assert numbers(memdiag.analyze(frame.lazy())) == expected
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    assert numbers(memdiag.analyze(columns)) == expected
    as_lists = {name: frame[name].to_list() for name in frame.columns}
    assert numbers(memdiag.analyze(as_lists)) == expected


def test_recording_as_a_frame_is_judged_as_its_file() -> None:
    path = RUNS / "healthy_figures.csv"
    assert numbers(memdiag.analyze(pl.read_csv(path))) == numbers(memdiag.analyze(path))


def test_pandas_frames_are_judged_as_their_files() -> None:
    pandas = pytest.importorskip("pandas")
    frame, expected = pandas.read_csv(LEAK), numbers(memdiag.analyze(LEAK))
    assert numbers(memdiag.analyze(frame)) == expected
    assert numbers(memdiag.analyze(frame.set_index("step"))) == expected
    assert numbers(memdiag.analyze(frame.astype({"vram_mb": "Int64"}))) == expected
    assert numbers(memdiag.analyze(frame.convert_dtypes())) == expected
    series = frame.set_index("step")["vram_mb"]
    assert memdiag.analyze(series).growth == memdiag.analyze(LEAK).growth


def test_dates_are_a_time_axis() -> None:
    pandas = pytest.importorskip("pandas")
    seconds = np.arange(3000.0)
    readings = 1e9 + 1e6 * seconds
    for zone in (None, "Europe/Berlin"):
        dates = pandas.date_range("2026-03-28", periods=3000, freq="s", tz=zone)
        for frame in (
            pandas.DataFrame({"rss_bytes": readings}, index=dates),
            pandas.DataFrame({"timestamp": dates, "rss_bytes": readings}),
        ):
            found = memdiag.analyze(frame)
            assert found.growth.per_second is not None
            assert found.growth.per_second.bytes == pytest.approx(1e6)
    dates = pl.datetime_range(
        pl.datetime(2026, 3, 28), pl.datetime(2026, 3, 28, 0, 49, 59), "1s", eager=True
    )
    found = memdiag.analyze(pl.DataFrame({"timestamp": dates, "rss_bytes": readings}))
    assert found.growth.per_second is not None


def test_array_with_positions_is_over_steps() -> None:
    frame = pl.read_csv(LEAK)
    steps, readings = frame["step"].to_numpy(), frame["vram_mb"].to_numpy()
    found = memdiag.analyze(readings, axis=steps, metric="vram=MB")
    assert found.growth == memdiag.analyze(LEAK).growth
    in_bytes = memdiag.analyze([1e6 * one for one in readings], axis=steps)
    assert in_bytes.growth.per_step is not None
    assert in_bytes.growth.per_step.bytes == pytest.approx(292_737_117, rel=1e-6)
    assert memdiag.analyze(readings * 1e6).growth.per_sample is not None
    over_time = memdiag.analyze(readings * 1e6, axis=steps, axis_is="second")
    assert over_time.growth.per_second is not None


def test_columns_of_other_types_are_read_as_in_a_file() -> None:
    steps = np.arange(300)
    readings = 1e9 + 1e6 * steps
    expected = memdiag.analyze({"step": steps, "rss_bytes": readings}).growth.per_step
    assert expected is not None
    frame = pl.DataFrame({"step": steps, "rss_bytes": readings})
    for columns in (
        frame.with_columns(pl.col("rss_bytes").cast(pl.Decimal(20, 2))),
        frame.with_columns(flag=pl.col("step") > 3, lists=pl.lit([1, 2])),
        frame.with_columns(phase=pl.lit("train").cast(pl.Categorical)),
        {"step": [str(one) for one in steps], "rss_bytes": [None, *readings[1:]]},
        {"step": steps, "mem": [f"{one / 1e6:,.1f} MB" for one in readings]},
    ):
        growth = memdiag.analyze(columns).growth.per_step
        assert growth is not None
        assert growth.bytes == pytest.approx(expected.bytes, rel=1e-3)


def test_columns_are_chosen_as_on_the_command_line() -> None:
    found = memdiag.analyze({"a": np.arange(9), "b": np.full(9, 7.0)}, axis="a", metric="b=GiB")
    (series,) = found.series
    assert (series.latest_value, series.axis.name) == (7 * 2**30, "a")


@pytest.mark.parametrize(
    ("source", "error", "text"),
    [
        ("nosuch.csv", memdiag.ReadError, "nosuch.csv: no such file"),
        ({"a": ["x"] * 40}, memdiag.ReadError, "dict: "),
        ({"a": [1, 2], "b": [1]}, memdiag.UsageError, "different lengths (a: 2, b: 1)"),
        (np.zeros((3, 3)), memdiag.UsageError, "shape 3x3"),
        (object(), memdiag.UsageError, "type object"),
        ([], memdiag.UsageError, "nothing to analyze"),
        (3, memdiag.UsageError, "shape ()"),
    ],
)
def test_what_cannot_be_read_is_an_error_in_words(source, error, text: str) -> None:
    with pytest.raises(error) as raised:
        memdiag.analyze(source)
    assert text in str(raised.value)


def test_errors_have_the_words_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("step,rss\n1,2\n")
    with pytest.raises(memdiag.UsageError) as raised:
        memdiag.analyze(path, metric="rss=parsec")
    done = called("analyze", path, "--metric", "rss=parsec")
    assert done.stderr == f"memdiag: error: {raised.value}\n"


def test_compare_is_that_of_the_command_line() -> None:
    found = memdiag.compare(LEAK, STABLE)
    document = json.loads(called("compare", "--json", LEAK, STABLE).stdout)
    del document["exit_code"]
    assert json.loads(json.dumps(found.to_dict())) == document
    assert found.effect is memdiag.Effect.FIXED
    assert found.effect == "fixed"
    assert repr(found).splitlines()[0] == "FIXED  the leak of 293 MB per step is gone"
    again = memdiag.compare(memdiag.analyze(LEAK), memdiag.analyze(STABLE))
    assert again.found == found.found


def test_names_from_outside_are_escaped_in_html() -> None:
    name = "<img src=x onerror=alert(1)> rss_mb"
    found = memdiag.analyze({"step": np.arange(200), name: np.arange(200.0)})
    page = found._repr_html_()
    assert "<img src=x" not in page
    assert "LEAK" in page or "INCONCLUSIVE" in page


def test_page_replaces_only_pages_of_memdiag(tmp_path: Path) -> None:
    found = memdiag.analyze(LEAK)
    for path in (tmp_path / "r.html", str(tmp_path / "r.html")):
        found.to_html(path)
    assert "LEAK" in (tmp_path / "r.html").read_text()
    memdiag.compare(LEAK, STABLE).to_html(tmp_path / "r.html")
    assert "FIXED" in (tmp_path / "r.html").read_text()
    mine = tmp_path / "mine.html"
    mine.write_text("<!DOCTYPE html> of my own")
    with pytest.raises(memdiag.MemdiagError, match="is not a memdiag report"):
        found.to_html(mine)
    assert mine.read_text() == "<!DOCTYPE html> of my own"
    with pytest.raises(FileNotFoundError):
        found.to_html(tmp_path / "no" / "such.html")


def test_picture_is_drawn_on_the_axes_that_are_given() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    ours = memdiag.analyze(LEAK).plot()
    assert "step" in ours.get_xlabel()
    _, theirs = pyplot.subplots()
    assert memdiag.analyze({"step": range(200), "$\\frac{$ mb": range(200)}).plot(theirs) is theirs
    theirs.figure.canvas.draw()  # a name is not read as a formula
    pyplot.close("all")


def test_notebook_shows_a_picture_and_the_report() -> None:
    pytest.importorskip("matplotlib")
    page = memdiag.analyze(LEAK)._repr_html_()
    assert page.startswith('<img src="data:image/png;base64,')
    assert "grows 293 MB per step" in page
    assert "┤" not in page, "there is one picture"
    assert "1 leak and 1 warmup" in memdiag.analyze([LEAK, STABLE])._repr_html_()
