"""Real engines and a real store judge recordings as the local engine does."""

import functools
import http.server
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fleets import fleet, write

from memdiag import analyze_many
from memdiag.fleet import judge_file

# These libraries warn about themselves.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(600)]
BUCKET = "runs"
MEMDIAG = [sys.executable, "-m", "memdiag"]


def verdicts(results: Path) -> dict[str, str]:
    database = sqlite3.connect(results)
    try:
        return dict(database.execute("SELECT path, verdict FROM recordings"))
    finally:
        database.close()


def judged_by(tmp_path, command, *options, env=None):
    """The verdict of each recording, judged in a process of its own. Its output is shown."""
    files = fleet(tmp_path / "f", healthy=30, leaking=3)
    results = tmp_path / "out.sqlite"
    whole = [*command, "analyze", tmp_path / "f", "--results", results, *options]
    done = subprocess.run(
        [str(one) for one in whole], capture_output=True, text=True, check=False, env=env
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 1, done.stderr
    assert "3 LEAK" in done.stdout
    found = verdicts(results)
    assert found.keys() == {str(file) for file in files}
    assert all((verdict == "leak") == ("/l" in path) for path, verdict in found.items())


@pytest.mark.parametrize("engine", ["local", "dask", "ray"])
def test_an_engine_judges_as_one_process_does(tmp_path, engine):
    if engine != "local":
        pytest.importorskip({"dask": "distributed"}.get(engine, engine))
    judged_by(tmp_path, MEMDIAG, "--engine", engine, "--jobs", "2")


@pytest.mark.skipif(shutil.which("mpiexec") is None, reason="needs mpiexec")
def test_ranks_of_mpi_judge(tmp_path):
    pytest.importorskip("mpi4py")
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    mpi = ["mpiexec", *root, "--oversubscribe", "-n", "4"]
    command = [*mpi, sys.executable, "-m", "mpi4py.futures", "-m", "memdiag"]
    judged_by(tmp_path, command, "--engine", "mpi")


@pytest.mark.skipif(shutil.which("java") is None, reason="needs java")
def test_spark_judges(tmp_path):
    pytest.importorskip("pyspark")
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    judged_by(tmp_path, MEMDIAG, "--engine", "spark", "--jobs", "2", env=env)


def test_a_dask_worker_that_is_killed_loses_no_recording(tmp_path):
    distributed = pytest.importorskip("distributed")
    files = fleet(tmp_path, healthy=60, leaking=0)
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        found = analyze_many(map(str, files), executor=client.get_executor(pure=False))
        paths = [next(found).path]
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        rest = list(found)
    assert sorted(paths + [one.path for one in rest]) == sorted(map(str, files))
    assert all(one.verdict is not None for one in rest)


def test_an_address_where_no_cluster_is(tmp_path):
    pytest.importorskip("distributed")
    write(tmp_path / "a.csv")
    command = [*MEMDIAG, "analyze", tmp_path, "--engine", "dask"]
    command += ["--engine-address", "tcp://127.0.0.1:1"]
    done = subprocess.run(
        [str(one) for one in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert done.stderr.splitlines()[0].startswith("memdiag: error: dask cannot be reached at")


@pytest.fixture
def bucket(monkeypatch):
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    store = pytest.importorskip("s3fs").S3FileSystem(skip_instance_cache=True)
    store.mkdir(BUCKET)
    yield store
    server.stop()


def test_recordings_of_an_object_store_are_judged_once(tmp_path, bucket):
    for file in fleet(tmp_path / "f", healthy=4, leaking=1):
        bucket.put_file(str(file), f"{BUCKET}/{file.name}")
    results = tmp_path / "out.sqlite"
    pattern = f"s3://{BUCKET}/*.csv"
    with ThreadPoolExecutor(2) as executor:
        first = list(analyze_many(pattern, executor=executor, results=results))
        assert sorted(one.path for one in first) == sorted(verdicts(results))
        assert [one.path for one in first if one.verdict == "leak"] == [f"s3://{BUCKET}/l0.csv"]
        bucket.put_file(str(tmp_path / "f" / "l0.csv"), f"{BUCKET}/h0.csv")
        bucket.rm_file(f"{BUCKET}/h1.csv")
        second = list(
            analyze_many(
                [pattern, f"s3://{BUCKET}/h1.csv"],
                executor=executor,
                results=results,
                storage_options={"use_listings_cache": False},
            )
        )
    judged = {one.path: one for one in second if not one.is_unchanged}
    assert judged.keys() == {f"s3://{BUCKET}/h0.csv", f"s3://{BUCKET}/h1.csv"}
    assert judged[f"s3://{BUCKET}/h0.csv"].verdict == "leak"
    assert judged[f"s3://{BUCKET}/h1.csv"].error


def test_recordings_of_google_storage_are_judged_once(tmp_path, monkeypatch):
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # gRPC without the emulator
    gcsfs = pytest.importorskip("gcsfs")
    with socket.create_server(("localhost", 0)) as unused:
        port = unused.getsockname()[1]
    server = emulator.create_server("localhost", port, in_memory=True, default_bucket=BUCKET)
    server.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://localhost:{port}")
    try:
        options = {"token": "anon", "skip_instance_cache": True}
        store = gcsfs.GCSFileSystem(**options)
        for file in fleet(tmp_path / "f", healthy=2, leaking=1):
            store.pipe(f"{BUCKET}/{file.name}", file.read_bytes())
        with ThreadPoolExecutor(1) as executor:
            first, second = (
                list(
                    analyze_many(
                        f"gs://{BUCKET}/*.csv",
                        executor=executor,
                        results=tmp_path / "out.sqlite",
                        storage_options=options,
                    )
                )
                for _ in range(2)
            )
    finally:
        server.stop()
    found = {one.path: one.verdict for one in first}
    assert found.keys() == {f"gs://{BUCKET}/{name}.csv" for name in ("h0", "h1", "l0")}
    assert found[f"gs://{BUCKET}/l0.csv"] == "leak"
    assert [one.is_unchanged for one in second] == [True] * 3


class Bad(http.server.SimpleHTTPRequestHandler):
    """Answers 500 for some names, and nothing for others."""

    hangs = threading.Event()

    def do_GET(self):
        if "broken" in self.path:
            self.send_error(500)
        elif "silent" in self.path:
            self.hangs.wait(60)
        else:
            super().do_GET()

    do_HEAD = do_GET  # noqa: N815 - its name

    def log_message(self, *_):
        pass


def test_a_store_that_fails_or_is_silent_is_a_result_with_the_reason(tmp_path, monkeypatch):
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(judge_file, "PATIENCE_S", 1.0)
    write(tmp_path / "good.csv")
    handler = functools.partial(Bad, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        urls = [f"{address}/{name}.csv" for name in ("good", "broken", "silent", "gone")]
        with ThreadPoolExecutor(1) as executor:
            found = {one.path: one for one in analyze_many(urls, executor=executor)}
        Bad.hangs.set()
        server.shutdown()
    assert found[urls[0]].verdict == "warmup"
    broken, silent, gone = (found[url].error for url in urls[1:])
    assert "500" in broken
    assert silent == "the store did not answer in time"
    assert gone
