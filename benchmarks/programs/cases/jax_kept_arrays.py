"""JAX: the gradients of each update are collected for a histogram."""

import sys
import time

import jax
import jax.numpy as jnp

WIDTH = 100


@jax.jit
def gradient(w: jax.Array, x: jax.Array) -> jax.Array:
    return jax.grad(lambda w: jnp.mean((x @ w - x) ** 2))(w)


def main() -> None:
    w, gradients = jnp.eye(WIDTH) * 0.5, []
    start, n = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        due = time.time() + 0.1
        x = jax.random.normal(jax.random.key(n), (20, WIDTH))
        gradients.append(gradient(w, x))
        w -= 0.1 * gradients[-1]
        n += 1
        time.sleep(max(0.0, due - time.time()))
    print(f"{n} updates in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
