"""Q-learning with a table of states, all of which have been met after a while."""

import sys
import time
from collections import defaultdict

import numpy as np
from _cart import CartPole


def cell(state: np.ndarray) -> tuple[int, ...]:
    scaled = np.clip(state / np.array([0.8, 1.0, 0.07, 1.0]), -4, 4)
    return tuple(int(v) for v in np.round(scaled))


def main() -> None:
    env, rng = CartPole(), np.random.default_rng(2)
    table: dict[tuple[int, ...], np.ndarray] = defaultdict(lambda: np.zeros(2))
    start, episodes = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        state, _ = env.reset()
        here, done = cell(state), False
        while not done:
            greedy = rng.random() > 0.2
            action = int(table[here].argmax()) if greedy else int(rng.integers(2))
            state, reward, done, cut, _ = env.step(action)
            there = cell(state)
            aim = reward + 0.99 * table[there].max() * (not done)
            table[here][action] += 0.1 * (aim - table[here][action])
            here, done = there, done or cut
        episodes += 1
        time.sleep(0.01)
    print(f"{episodes} episodes in {time.time() - start:.1f} s, {len(table)} cells")


if __name__ == "__main__":
    main()
