"""A pole on a cart with gymnasium's interface, for machines without gymnasium."""

from __future__ import annotations

import math

import numpy as np


class CartPole:
    """After Barto, Sutton and Anderson (1983): push left (0) or right (1)."""

    length, tick = 0.5, 0.02

    def __init__(self, seed: int = 0, limit: int = 200) -> None:
        self.rng = np.random.default_rng(seed)
        self.limit = limit
        self.state = np.zeros(4)
        self.age = 0

    def reset(self) -> tuple[np.ndarray, dict]:
        self.state, self.age = self.rng.uniform(-0.05, 0.05, 4), 0
        return self.state.astype(np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        _, speed, angle, turn = self.state
        force = 10.0 if action == 1 else -10.0
        push = (force + 0.05 * turn**2 * math.sin(angle)) / 1.1
        bend = 9.8 * math.sin(angle) - math.cos(angle) * push
        bend /= self.length * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1)
        gain = push - 0.05 * bend * math.cos(angle) / 1.1
        self.state = self.state + self.tick * np.array([speed, gain, turn, bend])
        self.age += 1
        fallen = bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21)
        return self.state.astype(np.float32), 1.0, fallen, self.age >= self.limit, {}
