"""A regression in JAX, nothing kept."""

import sys
import time

import jax
import jax.numpy as jnp


def loss(params: dict, x: jax.Array, y: jax.Array) -> jax.Array:
    hidden = jnp.tanh(x @ params["w1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


@jax.jit
def update(params: dict, x: jax.Array, y: jax.Array) -> dict:
    gradients = jax.grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients)


def main() -> None:
    key = jax.random.key(0)
    params = {"w1": jax.random.normal(key, (32, 64)), "w2": jnp.zeros((64, 1))}
    start, n = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        key, sub = jax.random.split(key)
        x = jax.random.normal(sub, (64, 32))
        params = update(params, x, x.sum(1, keepdims=True))
        n += 1
        time.sleep(0.04)
    print(f"{n} updates in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
