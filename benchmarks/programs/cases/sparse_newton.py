"""Newton's method on sparse systems of changing size: each is built, factored and dropped."""

import sys
import time

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu


def solve(size: int, rng: np.random.Generator) -> float:
    ones = np.ones(size)
    laplace = sp.diags_array([-ones[1:], 2.2 * ones, -ones[1:]], offsets=[-1, 0, 1])
    u, force = np.zeros(size), rng.normal(size=size)
    for _ in range(4):
        rest = laplace @ u + 0.1 * u**3 - force
        jacobian = (laplace + sp.diags_array(0.3 * u**2)).tocsc()
        u = u - splu(jacobian).solve(rest)
    return float(np.abs(rest).max())


def main() -> None:
    rng, worst = np.random.default_rng(4), 0.0
    start, systems = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        worst = max(worst, solve(int(rng.integers(2_000, 20_000)), rng))
        systems += 1
        time.sleep(0.03)
    print(f"{systems} systems in {time.time() - start:.1f} s, {worst:.1e}")


if __name__ == "__main__":
    main()
