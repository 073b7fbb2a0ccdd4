"""JAX with a class of its own: the optimizer remembers all former parameters."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np


class Averaged:
    """Averages over all parameters so far, and keeps them to do so."""

    def __init__(self, size: int) -> None:
        self.params = jnp.zeros(size)
        self.all: list[np.ndarray] = []
        self.grad = jax.jit(jax.grad(lambda p, t: jnp.sum((p - t) ** 2)))

    def step(self, target: jax.Array) -> None:
        self.params = self.params - 0.05 * self.grad(self.params, target)
        self.all.append(np.array(self.params))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--size", type=int, default=8000)
    args = parser.parse_args()
    averaged, target = Averaged(args.size), jnp.arange(args.size) / args.size
    start, n = time.time(), 0
    while time.time() - start < args.seconds:
        due = time.time() + 0.08
        averaged.step(target)
        n += 1
        time.sleep(max(0.0, due - time.time()))
    print(f"{n} steps in {time.time() - start:.1f} s, {np.mean(averaged.all[-1]):.3f}")


if __name__ == "__main__":
    main()
