import json

from fleets import fleet, write

from memdiag.cli.app import main


def run(capsys, monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["memdiag", "analyze", *map(str, arguments)])
    code = main()
    return code, *capsys.readouterr()


def test_many_recordings_are_a_summary(tmp_path, capsys, monkeypatch):
    fleet(tmp_path / "f", healthy=2, leaking=1)
    results = tmp_path / "out.sqlite"
    code, out, _ = run(capsys, monkeypatch, tmp_path / "f", "--jobs", "1", "--results", results)
    assert code == 1
    assert "3 recordings: 1 LEAK (33%)" in out
    assert "l0.csv" in out
    assert out.splitlines()[-1] == "memdiag: LEAK (1 leak and 2 warmup)"
    code, out, _ = run(capsys, monkeypatch, tmp_path / "f", "--jobs", "1", "--results", results)
    assert code == 1
    assert "Nothing is new or changed since the last time." in out


def test_the_summary_as_json(tmp_path, capsys, monkeypatch):
    write(tmp_path / "a\x1b[31m.csv")
    code, out, _ = run(capsys, monkeypatch, tmp_path, "--jobs", "1", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["counts"] == {"warmup": 1}
    assert found["exit_code"] == 0


def test_a_file_that_cannot_be_read_is_named_and_exits_with_2(tmp_path, capsys, monkeypatch):
    fleet(tmp_path, healthy=1, leaking=0)
    (tmp_path / "b\x1b[31m.csv").write_bytes(bytes(range(256)))
    code, out, _ = run(capsys, monkeypatch, tmp_path, "--jobs", "1")
    assert code == 2
    assert "not analyzed:" in out
    assert "\x1b[31m" not in out


def test_options_for_single_reports_are_refused(tmp_path, capsys, monkeypatch):
    write(tmp_path / "a.csv")
    arguments = (tmp_path, "--jobs", "1", "--html", tmp_path / "a.html")
    code, _, error = run(capsys, monkeypatch, *arguments)
    assert code == 2
    assert "--html cannot be used with --jobs" in error
    code, _, error = run(capsys, monkeypatch, tmp_path, "--engine", "abacus")
    assert code == 2
    assert "choose local, dask, ray, mpi, spark" in error


def test_jobs_are_judged_as_one_run(tmp_path, capsys, monkeypatch):
    (tmp_path / "job7").mkdir()
    for rank in range(4):
        write(tmp_path / "job7" / f"rank{rank}.csv", leak_mb=float(rank == 2))
    arguments = (f"{tmp_path}/job7", "--group-by", "directory", "--jobs", "1")
    code, out, _ = run(capsys, monkeypatch, *arguments)
    assert code == 1
    assert "jobs     1 job: 1 LEAK." in out
    assert "job7: Rank 2 alone leaks: look at its data" in " ".join(out.split())
    code, _, error = run(capsys, monkeypatch, tmp_path, "--group-by", "a'b")
    assert code == 2
    assert "not a label" in error


def test_standard_input_is_refused(tmp_path, capsys, monkeypatch):
    code, _, error = run(capsys, monkeypatch, "-", "--jobs", "1")
    assert code == 2
    assert "standard input cannot be judged by workers" in error


def test_a_recording_that_is_deleted_in_between_is_named(tmp_path, capsys, monkeypatch):
    files = fleet(tmp_path / "f", healthy=2, leaking=0)
    names = tmp_path / "list.txt"
    names.write_text("".join(f"{file}\n" for file in files))
    files[0].unlink()
    code, out, _ = run(capsys, monkeypatch, f"@{names}", "--jobs", "1")
    assert code == 2
    assert "h0.csv: no such file" in " ".join(out.split())
