"""Trains with a sabotaged probe: `sabotaged_training.py PROBE CHANNEL WORK PART PARTS`.

For every PARTS-th function of the probe in directory PROBE from the PART-th on, of those that the
training reaches, a copy of it in which this function fails is let into a forked child, which then
trains. Prints what went wrong, by function.
"""

import compileall
import gc
import io
import os
import shutil
import sys
import traceback
import warnings
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import torch
import torch._dynamo  # the first optimizer loads it: here once, not in every child
from sabotage import functions, noting, sabotaged
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NOTES = 99  # the descriptor to which functions write that they run
TRIES = 2  # in which functions are reached that depend on time


def let_in(probe: Path, channel: str) -> None:
    spec = spec_from_file_location(
        "_memdiag_probe", probe / "__init__.py", submodule_search_locations=[str(probe)]
    )
    sys.modules["_memdiag_probe"] = package = module_from_spec(spec)
    spec.loader.exec_module(package)
    os.environ["MEMDIAG_CHANNEL"] = channel
    try:
        from _memdiag_probe import heartbeat, tensor_sampler
        from _memdiag_probe.arm import arm

        tensor_sampler._AT_LEAST_S = 0.0
        heartbeat.TICK_S = heartbeat.EARLY_S = 0.002
        arm()
    except RuntimeError:
        return  # where sitecustomize has its guard


def train() -> float:
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    data = DataLoader(TensorDataset(torch.randn(12, 4)), batch_size=4)
    for factor in (1.0, float("inf")):
        model.train()
        for (x,) in data:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            scaler.scale(loss * factor).backward()
            scaler.step(optimizer)
            scaler.update()
        model.eval()
        with torch.no_grad():
            for (x,) in data:
                model(x)
        torch.save(model.state_dict(), io.BytesIO())
    del optimizer
    try:
        torch.autograd.backward(torch.zeros(2))
    except RuntimeError as error:
        if "injected" in str(error):
            raise
    return loss.item()


def train_in_child(probe: Path, channel: str, expected: float) -> int:
    """Exit status of a forked child that trains with this probe; 0: all went as without it."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    status = 0
    try:
        let_in(probe, channel)
        found = train()
        assert found == expected, (found, expected)
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        status = 1
    sys.stdout.flush()
    os._exit(status)


def reached_by_child(
    source: Path, probe: Path, channel: str, notes: Path, expected: float
) -> set[str]:
    """`file:name` of the functions of the probe that run while a child trains."""
    files = {file for file, _ in functions(source)}
    sound = {file: (probe / file).rename(probe / f"{file}.sound") for file in files}
    for file in files:
        (probe / file).write_text(noting((source / file).read_text(), file, NOTES))
    opened = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(opened, NOTES)
    os.close(opened)
    train_in_child(probe, channel, expected)
    os.close(NOTES)
    for file, path in sound.items():
        path.replace(probe / file)
    return set(notes.read_text().split("\n"))


def main() -> None:
    source, channel, probe = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]) / "probe"
    part, parts = map(int, sys.argv[4:])
    shutil.copytree(source, probe, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(probe, quiet=1)  # once; a child compiles the file that is sabotaged
    sys.dont_write_bytecode = True
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    expected = train()
    gc.freeze()  # a child that looks through all objects of torch would have a copy of them made
    if train_in_child(probe, channel, expected):
        print("FAILED with a sound probe")
    reached = set()
    for _ in range(TRIES):
        reached |= reached_by_child(source, probe, channel, Path(sys.argv[3]) / "notes", expected)
    for file, name in functions(source)[part::parts]:
        if f"{file}:{name}" not in reached:
            continue
        sound = (probe / file).rename(probe / "sound")  # (keeps its time, so what is compiled)
        (probe / file).write_text(sabotaged(sound.read_text(), name))
        if train_in_child(probe, channel, expected):
            print("FAILED with", file, name)
        sound.replace(probe / file)
    print("done")


if __name__ == "__main__":
    main()
