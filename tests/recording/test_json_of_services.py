"""Answers of monitoring services in JSON, which name their metrics in ways of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from logs import read_log

from memdiag.errors import ReadError
from memdiag.recording.read_options import MetricChoice

N = 30
POINTS = [
    {"startTimeInMillis": 1727733600000 + 600_000 * n, "min": 9, "value": 1430 + n, "count": 30}
    for n in range(N)
]


def test_a_unit_of_the_name_beside_the_points_is_read(tmp_path: Path) -> None:
    document = [
        {
            "metricName": "JVM|Memory:Heap|Current Usage (MB)",
            "frequency": "TEN_MIN",
            "metricValues": POINTS,
        }
    ]
    (series,) = read_log(tmp_path, json.dumps(document, indent=1)).series
    assert series.y.tolist() == [(1430 + n) * 1e6 for n in range(N)]
    assert series.x[-1] - series.x[0] == 600 * (N - 1)


def test_a_metric_in_an_object_of_its_own_is_read(tmp_path: Path) -> None:
    points = [{"Timestamp": f"2024-10-02T00:{n:02}:00+00:00", "Value": 3e6 + n} for n in range(N)]
    document = {"MetricList": [{"Key": {"Metric": "os.memory.active"}, "DataPoints": points}]}
    (series,) = read_log(tmp_path, json.dumps(document, indent=1)).series
    assert series.y.tolist() == [3e6 + n for n in range(N)]


def test_points_in_a_text_of_json_are_read(tmp_path: Path) -> None:
    points = [{"timestamp": 1727712000000 + 300_000 * n, "Average": 2.9e9 + n} for n in range(N)]
    document = {"Period": "300", "Datapoints": json.dumps(points)}
    name = "cms_memory_usedspace.json"
    (series,) = read_log(tmp_path, json.dumps(document, indent=1), name).series
    assert series.y.tolist() == [2.9e9 + n for n in range(N)]


def test_columns_that_are_objects_name_the_cells_of_rows(tmp_path: Path) -> None:
    columns = [{"name": "TimeGenerated", "type": "datetime"}, {"name": "rss_bytes", "type": "real"}]
    rows = [[f"2024-10-06T00:{n:02}:00Z", 7e8 + n] for n in range(N)]
    document = {"tables": [{"name": "PrimaryResult", "columns": columns, "rows": rows}]}
    (series,) = read_log(tmp_path, json.dumps(document)).series
    assert series.y.tolist() == [7e8 + n for n in range(N)]


@pytest.mark.parametrize("n", [N, 1500])
def test_texts_of_json_between_record_separators_are_read(tmp_path: Path, n: int) -> None:
    lines = [f'\x1e{{"step": {at}, "rss_mb": {800 + at}}}' for at in range(n)]
    (series,) = read_log(tmp_path, lines, "log.json-seq").series
    assert series.y.tolist() == [(800 + at) * 1e6 for at in range(n)]


def test_numbers_that_nothing_names_are_refused_with_the_column_of_values(tmp_path: Path) -> None:
    rows = [
        {"itemid": "44817", "clock": f"{1712345640 + 60 * n}", "value": f"{6121704541 + n}"}
        for n in range(N)
    ]
    answer = json.dumps({"jsonrpc": "2.0", "result": [{**row, "ns": "625453422"} for row in rows]})
    with pytest.raises(ReadError) as refused:
        read_log(tmp_path, answer)
    assert refused.value.remedy == "name the column: --metric 'value=bytes'"
    choice = MetricChoice(name="value", unit="bytes")
    (series,) = read_log(tmp_path, answer, metrics=(choice,)).series
    assert series.y.tolist() == [6121704541 + n for n in range(N)]
