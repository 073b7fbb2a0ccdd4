"""A random search that keeps every fitted model, not the best alone."""

import sys
import time

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler


class Search:
    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.x, self.y = rng.normal(size=(60, 120)), rng.normal(size=(60, 40))
        self.rng = rng
        self.tried: list[tuple[float, StandardScaler, Ridge]] = []

    def try_one(self) -> float:
        alpha = float(10 ** self.rng.uniform(-3, 3))
        scaler = StandardScaler().fit(self.x[:45])
        model = Ridge(alpha=alpha).fit(scaler.transform(self.x[:45]), self.y[:45])
        score = model.score(scaler.transform(self.x[45:]), self.y[45:])
        self.tried.append((score, scaler, model))
        return score


def main() -> None:
    search = Search()
    start, n = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        due = time.time() + 0.1
        search.try_one()
        n += 1
        time.sleep(max(0.0, due - time.time()))
    print(f"best {max(score for score, _, _ in search.tried):.3f}")
    print(f"{n} trials in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
