"""Evolution strategies with numpy alone; the frames of every episode are kept for a video."""

import argparse
import time

import numpy as np
from _cart import CartPole


def render(state: np.ndarray) -> np.ndarray:
    image = np.zeros((24, 80), dtype=np.uint8)
    image[:, int(np.clip(40 + 15 * state[0], 0, 79))] = 255
    return image


def rollout(env: CartPole, weights: np.ndarray, frames: list[np.ndarray]) -> float:
    state, _ = env.reset()
    total = 0.0
    for _ in range(12):
        state, reward, done, _, _ = env.step(int(weights @ state > 0))
        frames.append(render(state))
        total += reward * (not done)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--sigma", type=float, default=0.3)
    args = parser.parse_args()
    rng, env = np.random.default_rng(0), CartPole()
    video: list[np.ndarray] = []
    mean = np.zeros(4)
    start, generation = time.time(), 0
    while time.time() - start < args.seconds:
        due = time.time() + 0.1
        noise = rng.normal(size=(4, 4))
        returns = np.array([rollout(env, mean + args.sigma * n, video) for n in noise])
        mean += 0.1 * (returns - returns.mean()) @ noise
        generation += 1
        time.sleep(max(0.0, due - time.time()))
    print(f"{generation} generations in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
