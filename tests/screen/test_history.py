"""Series of any length in constant memory, without losing what matters."""

from memdiag.screen.history import PhaseHistory, SeriesHistory


def history_of(values):
    history = SeriesHistory()
    for x, value in enumerate(values):
        history.add(float(x), value)
    return history


def test_a_peak_of_one_reading_in_100_000_stays_visible_at_every_width():
    history = history_of(1.0 if x != 70_123 else 9.0 for x in range(100_000))
    for columns in (10, 80, 400):
        points = history.points(columns)
        assert len(points) <= 2 * columns + 3
        (peak,) = [x for x, value in points if value == 9.0]
        assert abs(peak - 70_123) <= 100_000 / columns + history.width


def test_a_dip_of_one_reading_stays_visible():
    assert min(v for _, v in history_of([5.0] * 5000 + [1.0] + [5.0] * 5000).points(60)) == 1.0


def test_the_number_of_stretches_is_bounded():
    assert len(history_of(float(x % 7) for x in range(50_000))) < 1024


def test_the_latest_reading_ends_the_curve():
    assert history_of([1.0, 2.0, 7.0]).points(80)[-1] == (2.0, 7.0)


def test_an_empty_history_has_no_points():
    assert SeriesHistory().points(80) == ()


def test_phases_are_spans_and_unnamed_ones_are_left_out():
    phases = PhaseHistory()
    for x in range(30):
        phases.add(float(x), ("train", "", "eval")[x // 10])
    assert [(span.phase, span.start_x, span.end_x) for span in phases.spans] == [
        ("train", 0.0, 9.0),
        ("eval", 20.0, 29.0),
    ]


def test_of_very_many_phases_the_longer_ones_stay():
    phases = PhaseHistory()
    for event in range(20_000):
        phases.add(event * 100.0, "train")
        phases.add(event * 100.0 + 90.0, "train")
        phases.add(event * 100.0 + 91.0, "eval")
    assert len(phases.spans) <= 1024
    assert any(span.phase == "train" for span in phases.spans)
