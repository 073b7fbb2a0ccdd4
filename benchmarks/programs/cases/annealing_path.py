"""Simulated annealing of a round trip, which keeps each route that it has accepted for a plot."""

import math
import random
import sys
import time


def length(route: list[int], towns: list[complex]) -> float:
    return sum(abs(towns[a] - towns[b]) for a, b in zip(route, route[1:] + route[:1], strict=True))


def main() -> None:
    random_ = random.Random(3)
    towns = [complex(random_.random(), random_.random()) for _ in range(300)]
    route = list(range(300))
    now, path = length(route, towns), []
    start, sweeps = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        accepted = 0
        while accepted < 4:
            a, b = sorted(random_.sample(range(300), 2))
            other = route[:a] + route[a:b][::-1] + route[b:]
            then = length(other, towns)
            if then < now or random_.random() < math.exp((now - then) / 5):
                route, now = other, then
                path.append({"length": now, "route": other})
                accepted += 1
        sweeps += 1
        time.sleep(0.03)
    print(f"{sweeps} sweeps in {time.time() - start:.1f} s, {now:.1f}")


if __name__ == "__main__":
    main()
