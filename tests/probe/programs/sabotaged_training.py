"""Trains with a sabotaged probe: `sabotaged_training.py PROBE CHANNEL WORK`.

For every function of the probe in directory PROBE, a copy of it in which this function fails is
put into a forked child, which then trains. Prints what went wrong, by function.
"""

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
from sabotage import functions, sabotaged
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# This training uses neither Keras nor steps from loops, and nobody asks it for a census.
UNUSED = (
    "interventions.py",
    "keras_fit.py",
    "libraries.py",
    "loop_events.py",
    "loop_steps.py",
    "loops.py",
    "memory_census.py",
)


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


def child(source: Path, channel: str, work: Path, file: str, name: str, expected: float) -> None:
    probe = work / "probe"
    shutil.copytree(source, probe, ignore=shutil.ignore_patterns("__pycache__"))
    if name:
        (probe / file).write_text(sabotaged((probe / file).read_text(), name))
    let_in(probe, channel)
    found = train()
    assert found == expected, (found, expected)


def main() -> None:
    source, channel, work = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    expected = train()
    faults = [(file, name) for file, name in functions(source) if file not in UNUSED]
    for file, name in [("", ""), *faults]:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            status = 0
            try:
                child(source, channel, work, file, name, expected)
            except BaseException:
                traceback.print_exc(file=sys.stdout)
                status = 1
            sys.stdout.flush()
            os._exit(status)
        if os.waitpid(pid, 0)[1]:
            print("FAILED with", file, name)
        shutil.rmtree(work / "probe", ignore_errors=True)
    print("done")


if __name__ == "__main__":
    main()
