"""Whatever is in a file: a recording, or an error of ours."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memdiag.errors import MemdiagError
from memdiag.recording.read import read
from memdiag.recording.read_options import MetricChoice, ReadOptions
from memdiag.recording.registry import FORMATS

# More of them with `MEMDIAG_FUZZ=100000 pytest tests/recording/test_fuzzing.py`.
_EXAMPLES = int(os.environ.get("MEMDIAG_FUZZ", "150"))

_EXPORTS = [
    path.read_bytes()
    for path in sorted((Path(__file__).parents[2] / "fixtures" / "exports").iterdir())
]
_EXPORTS.append(
    pickle.dumps(
        {
            "segments": [{"device": 0, "allocated_size": 5, "total_size": 9}],
            "device_traces": [[{"action": "alloc", "size": n, "time_us": n} for n in range(9)]],
        }
    )
)

# A frame of one segment whose size takes four bytes, and the beginning of a raw block.
_ZSTD = b"\x28\xb5\x2f\xfd\xa0"

_NAMES = ["step", "epoch", "time", "timestamp", "pid", "rank", "phase", "rss_mb", "VRAM (MB)", "mb"]
_NAMES += ["memory.used [MiB]", "tensors", "at_s", "process", "loss", "", "available", "index"]
_CELLS = [
    "1",
    "2",
    "17,412",
    "23498 MiB",
    "2.6G",
    "",
    "nan",
    "inf",
    "-",
    "1e400",
    "x",
    "0x10",
    "5%",
]
_CELLS += [
    "2024/11/23 12:23:29.950",
    "12:00:01",
    "t+5",
    "**7**",
    '"',
    "9" * 400,
    "9" * 25,
    "1/100",
    "٣",
    "-5",
]
_LINES = ["at_s,step,phase,pid,process,rss_bytes", "MEM 1.5 17e8", "| step | MB |", "|---|---|"]
_LINES += [
    "step 5 rss 7 MB",
    "Epoch [1][3/9]\tmemory: 6814",
    "# gpu pid fb command",
    "0 1 2 python",
]
_LINES += ["CMDLINE x", "# Elapsed time   CPU (%)     Real (MB)   Virtual (MB)", "PID RSS COMMAND"]
_LINES += ["total used free", "Mem: 1 2 3", '{"step": 1, "rss_mb": 2}', "[1.5, 2.5]", "12 7.5 MB"]
_LINES += [
    "0, 92 %, 49140 MiB, 25073 MiB",
    "pfullmem(rss=4096)",
    "rss=1MB\tvms=2MB",
    "5",
    "\x1b[31m",
]

_LINES += [
    '{"metric": {"__name__": "rss_bytes"}, "values": [[1, "2"], [3]]}',
    "1700000000000 5.5 1",
]
_LINES += ["| Allocated memory | 5 KiB | 7 KiB |", "PyTorch CUDA memory summary, device ID 0"]
_LINES += [
    '"Step","A - system/gpu.0.memory","A - rss_mb__MIN","A - rss_mb"',
    "_step,_runtime,rssMB",
]
_LINES += ["Total allocations:\n\t5", "Peak memory usage:\n\t2.5MB", '{"total_num_allocations": 1}']

_lines = st.lists(st.one_of(st.sampled_from(_LINES), st.text(max_size=30)), max_size=12)
_separators = st.sampled_from([",", "\t", ";", "|", " "])


@st.composite
def _tables(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=6))
    separator = draw(_separators)
    row = st.lists(st.sampled_from(_CELLS), min_size=1, max_size=7)
    rows = draw(st.lists(row, max_size=15))
    return "\n".join(separator.join(cells) for cells in [names, *rows])


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(_CELLS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([*_NAMES, "metric", "values", "_step"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)
_opcodes = st.lists(
    st.sampled_from([bytes([code]) for code in b"(}])aesutldNKMJjhqrG\x85\x88\x94\x8aX\x8cC.cR"])
    | st.binary(max_size=4),
    max_size=30,
)


@st.composite
def _damaged_export(draw: st.DrawFn) -> bytes:
    """A real export with bytes changed, cut out or put in."""
    content = bytearray(draw(st.sampled_from(_EXPORTS)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(content) - 1))
        content[at : at + draw(st.integers(0, 9))] = draw(st.binary(max_size=9))
    return bytes(content)


_content = st.one_of(
    _damaged_export(),
    _json.map(lambda value: json.dumps(value).encode()),
    _opcodes.map(lambda codes: b"\x80\x04" + b"".join(codes)),
    st.binary(max_size=300),
    _lines.map(lambda lines: "\n".join(lines).encode("utf-8", "surrogatepass")),
    _lines.map(lambda lines: ("\n".join(lines * 4)).encode("utf-16", "surrogatepass")),
    _tables().map(lambda text: text.encode()),
    _tables().map(lambda text: text.encode()[:-3]),
    _damaged_export().map(lambda content: gzip.compress(content, 1)),
    st.one_of(st.binary(max_size=60), _damaged_export()).map(lambda content: _ZSTD + content),
)
_options = st.builds(
    ReadOptions,
    x=st.sampled_from(["", "", "step", "nothing"]),
    metrics=st.sampled_from([(), (), (MetricChoice(name="rss_mb"),), (MetricChoice(name="loss"),)]),
    phase_column=st.sampled_from(["", "", "phase"]),
    format=st.sampled_from(["", "", "", *(family.name for family in FORMATS)]),
    pattern=st.sampled_from(["", "", "", r"(?<rss_mb>\d+)", r"(?<step>\d+).*?(?<rss_mb>\d+)", "("]),
    table=st.sampled_from([None, None, 1, 2]),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to be overwritten with each example."""
    return tmp_path_factory.mktemp("fuzz") / "file"


@settings(
    max_examples=_EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(content=_content, options=_options)
@example(content=b"", options=ReadOptions())
@example(content=b"step,rss_mb\n1,5\n2,6\n", options=ReadOptions())
def test_no_reader_raises_anything_but_our_errors(
    place: Path, content: bytes, options: ReadOptions
) -> None:
    place.write_bytes(content)
    try:
        recording = read(str(place), options)
    except MemdiagError:
        return
    assert recording.series
    for series in recording.series:
        assert len(series.x) == len(series.y) > 0
        assert series.y.dtype == np.float64
        assert not np.isinf(series.y).any()
        assert "\x1b" not in series.process + series.column + series.metric
        assert series.at_s is None or len(series.at_s) == len(series.y)
        assert series.phases is None or series.phases.codes.max() < len(series.phases.names)
