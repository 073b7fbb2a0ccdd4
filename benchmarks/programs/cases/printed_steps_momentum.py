"""The same perceptron with momentum: prints each hundredth step and keeps one gradient only."""

import sys
import time

import numpy as np


class Momentum:
    def __init__(self, shapes, rate=0.02, decay=0.9):
        self.velocity = [np.zeros(s) for s in shapes]
        self.rate, self.decay = rate, decay

    def update(self, weights, gradients):
        for i, (w, g) in enumerate(zip(weights, gradients, strict=True)):
            self.velocity[i] = self.decay * self.velocity[i] - self.rate * g
            np.add(w, self.velocity[i], out=w)


def main(seconds):
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(64, 48)) * 0.1, rng.normal(size=(48, 1)) * 0.1]
    optimizer = Momentum([w.shape for w in weights])
    t0, step = time.time(), 0
    while time.time() - t0 < seconds:
        x = rng.normal(size=(64, 64))
        hidden = np.tanh(x @ weights[0])
        error = hidden @ weights[1] - x[:, :1]
        back = error @ weights[1].T * (1 - hidden**2)
        optimizer.update(weights, [x.T @ back / 64, hidden.T @ error / 64])
        step += 1
        if step % 100 == 0:
            print(f"step {step} loss {float((error**2).mean()):.4f}", flush=True)
        time.sleep(0.008)
    print(f"{step} steps in {time.time() - t0:.1f} s")


if __name__ == "__main__":
    main(float(sys.argv[1]))
