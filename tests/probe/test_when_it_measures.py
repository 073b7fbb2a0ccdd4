"""What is measured belongs to the program: not its imports, and not its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdiag.capture.probelink.channel import ChannelReader
from memdiag.capture.probelink.ring_reader import Kind
from memdiag.probe.session import Session

IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(str(tmp_path))


def asked(session: Session) -> bool:
    return session.is_main_thread_in(IMPORT_SYSTEM)


def test_an_import_is_seen_on_the_stack_of_the_main_thread(session, monkeypatch) -> None:
    importing = asked.__code__.replace(co_filename=IMPORT_SYSTEM)
    monkeypatch.setattr(asked, "__code__", importing)
    assert asked(session)


def test_code_that_runs_after_its_imports_is_in_none(session) -> None:
    assert not asked(session)


def test_nothing_is_measured_while_the_process_ends(session, tmp_path) -> None:
    reader = ChannelReader(tmp_path)
    session.beat()
    assert [event for event in reader.drain() if "rss_bytes" in event.readings]
    session.record_exit()
    reader.drain()
    session.beat()
    assert not [event for event in reader.drain() if "rss_bytes" in event.readings]


def test_where_the_work_ends_is_told_last(session, tmp_path) -> None:
    reader = ChannelReader(tmp_path)
    session.work_begins()
    session.beat()
    session.record_exit()
    events = reader.drain()
    assert [event.value for event in events if event.kind is Kind.WORK] == [1.0, 0.0]
    assert events[-1].kind is Kind.WORK


def test_beats_do_not_measure_the_objects_of_a_look(session, tmp_path) -> None:
    reader = ChannelReader(tmp_path)
    with session.own_objects:
        session.beat()
    assert not reader.drain()
    session.beat()
    assert [event for event in reader.drain() if "rss_bytes" in event.readings]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_that_computes_is_measured_whatever_it_imports(watched, python, method) -> None:
    program = str(Path(__file__).parent / "programs" / "workers.py")
    done = watched.run(python, program, method, "4")
    assert (done.stdout, done.stderr) == ("0\n", "")
    measured = {event.process for event in watched.events() if "rss_bytes" in event.readings}
    roles = {one.process: one.role for one in watched.reader.processes()}
    assert {roles[one] for one in measured} == {f"{method.title()}Process-1"}
