"""No exception of ours ever surfaces in the program: each function of the probe is made to fail.

A copy of the probe gets a `raise` as the first statement of one function, and a program with
tags, forks, threads and a (pretended) torch runs with it. Its output must be the same as ever.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import memdiag.probe

PROBE = Path(memdiag.probe.__file__).parent
PROGRAM = """
import os, sys, time
session = getattr(sys.modules.get("_memdiag_probe"), "listener", None)
def tag(n):
    if session:
        session.phase_begin("train")
        session.counter("copies", n)
        session.step(n)
        session.phase_end("train")
        session.step("abc")
        session.counter("copies", None)
tag(1)
import torch
import multiprocessing
tag(2)
def work():
    tag(3)
    print("child", flush=True)
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
pid = os.fork()
tag(4)
if pid == 0:
    os._exit(0)
print(os.waitpid(pid, 0)[1], child.exitcode)
sys.stderr.write("to stderr\\n")
sys.exit(7)
"""


def functions() -> Iterator[tuple[str, str]]:
    for path in sorted(PROBE.rglob("*.py")):
        for name, _ in _functions_of(ast.parse(path.read_text())):
            yield str(path.relative_to(PROBE)), name


def _functions_of(
    tree: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not isinstance(node, ast.ClassDef):
                yield prefix + node.name, node
            yield from _functions_of(node, f"{prefix}{node.name}.")
        else:
            yield from _functions_of(node, prefix)


def sabotaged(source: str, name: str) -> str:
    """The source with a failure as the first thing that function `name` does.

    A function whose body is one guarded block fails within its guard, for that is what it does
    first.
    """
    tree = ast.parse(source)
    (function,) = (node for found, node in _functions_of(tree) if found == name)
    body = function.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    at = 1 if documented else 0
    if at < len(body) and isinstance(body[at], ast.Try):
        body, at = body[at].body, 0
    body.insert(at, ast.parse("raise RuntimeError('injected')").body[0])
    return ast.unparse(ast.fix_missing_locations(tree))


@pytest.fixture(scope="module")
def torch_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pretended")
    (directory / "torch.py").write_text("Tensor = int\noptim = None\n")
    return directory


@pytest.mark.parametrize(("file", "name"), list(functions()))
def test_failure_of_a_function_of_the_probe_is_unnoticed(
    tmp_path: Path, torch_directory: Path, python: str, file: str, name: str
) -> None:
    probe = tmp_path / "probe"
    shutil.copytree(PROBE, probe, ignore=shutil.ignore_patterns("__pycache__"))
    (probe / file).write_text(sabotaged((probe / file).read_text(), name))
    channel = tmp_path / "channel"
    channel.mkdir()
    environ = {
        "PYTHONPATH": f"{probe / 'inject'}:{torch_directory}",
        "MEMDIAG_CHANNEL": str(channel),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [python, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=False
    )
    assert done.stderr == "to stderr\n"
    assert done.stdout == "child\n0 0\n"
    assert done.returncode == 7
