"""22 trainings with a known truth: `cases.py CASE SECONDS`. None knows memdiag.

6 healthy ones, 6 warm-ups, 10 leaks of 1 KB to 130 KB per step. Each is a small torch training that
takes a step some thirty times a second. Warm-ups fill by the clock, in the first third of the time.
"""

from __future__ import annotations

import ctypes
import gc
import io
import sys
import time
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

PACE_S = 0.03
WIDTH, BATCH = 64, 32
_LIBC = ctypes.CDLL(None)
_LIBC.malloc.restype = ctypes.c_void_p
_LIBC.malloc.argtypes = [ctypes.c_size_t]

CASES: dict[str, Callable[[Clock], None]] = {}


class Clock:
    """Gives step numbers until the time is over, at an even pace."""

    def __init__(self, seconds: float) -> None:
        self._began_s = time.monotonic()
        self._seconds = seconds

    @property
    def done(self) -> float:
        """The part of the time that is over, 0..1."""
        return (time.monotonic() - self._began_s) / self._seconds

    def steps(self) -> Iterator[int]:
        step = 0
        while self.done < 1:
            due_s = time.monotonic() + PACE_S
            step += 1
            yield step
            time.sleep(max(0.0, due_s - time.monotonic()))


class Model:
    """A small model with its optimizer."""

    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-4)

    def train(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """One step; output and loss."""
        out = self.net(x)
        loss = F.mse_loss(out, x)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return out, loss

    def evaluate(self, batches: int) -> list[torch.Tensor]:
        self.net.eval()
        with torch.no_grad():
            outs = [self.net(batch()) for _ in range(batches)]
        self.net.train()
        return outs


def batch(rows: int = BATCH) -> torch.Tensor:
    return torch.randn(rows, WIDTH)


def case(function: Callable[[Clock], None]) -> Callable[[Clock], None]:
    CASES[function.__name__] = function
    return function


# -- healthy -------------------------------------------------------------------------------


@case
def stable_mlp(clock: Clock) -> None:
    model = Model()
    for _ in clock.steps():
        model.train(batch())


@case
def stable_cnn(clock: Clock) -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4))
    net(torch.zeros(1, 3, 16, 16))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for _ in clock.steps():
        optimizer.zero_grad()
        net(torch.randn(8, 3, 16, 16)).square().mean().backward()
        optimizer.step()


@case
def loss_items(clock: Clock) -> None:
    """A list of numbers, as everybody keeps: 32 bytes per step."""
    model, losses = Model(), []
    for _ in clock.steps():
        losses.append(model.train(batch())[1].item())


@case
def evaluation_spikes(clock: Clock) -> None:
    model = Model()
    for step in clock.steps():
        model.train(batch())
        if step % 40 == 0:
            torch.cat(model.evaluate(100))


@case
def sawtooth_of_cycles(clock: Clock) -> None:
    """Cycles that the collector finds now and then."""
    model = Model()
    for _ in clock.steps():
        out, _ = model.train(batch())
        knot = {"out": out.detach().clone()}
        knot["self"] = knot


@case
def checkpoint_spikes(clock: Clock) -> None:
    model, ballast = Model(), nn.Linear(1000, 1000)
    for step in clock.steps():
        model.train(batch())
        if step % 50 == 0:
            torch.save(ballast.state_dict(), io.BytesIO())


# -- warm-ups --------------------------------------------------------------------------------


@case
def growing_batch(clock: Clock) -> None:
    model = Model()
    for _ in clock.steps():
        model.train(batch(BATCH + int(2000 * min(1.0, 3 * clock.done))))


@case
def workers_prefetch(clock: Clock) -> None:
    model = Model()
    data = DataLoader(TensorDataset(batch(100_000)), batch_size=BATCH, num_workers=2)
    for _, (x,) in zip(clock.steps(), data, strict=False):
        model.train(x)


@case
def cache_fills(clock: Clock) -> None:
    model, cache = Model(), []
    for _ in clock.steps():
        model.train(batch())
        if clock.done < 1 / 3:
            cache.append(torch.ones(16_000))


@case
def replay_buffer(clock: Clock) -> None:
    model, buffer = Model(), []
    for step in clock.steps():
        x = batch(128)
        model.train(x)
        if clock.done < 1 / 3:
            buffer.append(x)
        else:
            buffer[step % len(buffer)] = x


@case
def varied_lengths(clock: Clock) -> None:
    model = Model()
    for step in clock.steps():
        model.train(batch(BATCH + 37 * step * step % 1500))


@case
def features_of_keys(clock: Clock) -> None:
    """A cache by key, of which there are so many: new ones become rarer."""
    model, features = Model(), {}
    for step in clock.steps():
        model.train(batch())
        key = step * 7919 % 300 if clock.done < 1 / 3 else step % 300
        features.setdefault(key, torch.ones(8000))


# -- leaks --------------------------------------------------------------------------------------


@case
def history(clock: Clock) -> None:
    model, kept = Model(), []
    for _ in clock.steps():
        kept.append(model.train(batch(200))[0].detach())


@case
def small_dict(clock: Clock) -> None:
    """1 KB and the object around it."""
    model, store = Model(), {}
    for step in clock.steps():
        model.train(batch())
        store[step] = torch.ones(256)


@case
def hook_activations(clock: Clock) -> None:
    model, seen = Model(), []
    model.net[1].register_forward_hook(lambda *a: seen.append(a[2].detach().clone()))
    for _ in clock.steps():
        model.train(batch(512))


@case
def graph_of_losses(clock: Clock) -> None:
    """Each term keeps what its backward pass would need."""
    model, total = Model(), torch.zeros(())
    weights = torch.ones(8192, requires_grad=True)
    for step in clock.steps():
        model.train(batch())
        total = total + torch.tanh(weights * step).sum()


@case
def numpy_metrics(clock: Clock) -> None:
    import numpy as np

    model, kept = Model(), []
    for step in clock.steps():
        model.train(batch())
        kept.append(np.full(5000, float(step)))


@case
def native(clock: Clock) -> None:
    """malloc without free, in a library."""
    model = Model()
    for _ in clock.steps():
        model.train(batch())
        ctypes.memset(_LIBC.malloc(50_000), 1, 50_000)


@case
def cycles_without_collector(clock: Clock) -> None:
    gc.disable()
    model = Model()
    for _ in clock.steps():
        model.train(batch())
        knot = {"tensor": torch.ones(16_384)}
        knot["self"] = knot


class Remembers(Dataset):
    """Synthetic samples, each read but once and kept."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> torch.Tensor:
        self.seen.append(b"%d" % index * (4096 // len(b"%d" % index)))
        return batch(1)[0]


@case
def worker(clock: Clock) -> None:
    model = Model()
    data = DataLoader(Remembers(), batch_size=8, num_workers=1)
    for _, x in zip(clock.steps(), data, strict=False):
        model.train(x)


@case
def evaluations(clock: Clock) -> None:
    """Predictions of every evaluation, for a report that is never made."""
    model, kept = Model(), []
    for step in clock.steps():
        model.train(batch())
        if step % 20 == 0:
            kept += model.evaluate(15)


@case
def python_objects(clock: Clock) -> None:
    model, log = Model(), []
    for step in clock.steps():
        model.train(batch())
        log.append([{"step": step, "n": n, "text": f"{step}/{n}"} for n in range(40)])


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    CASES[sys.argv[1]](Clock(float(sys.argv[2])))


if __name__ == "__main__":
    main()
