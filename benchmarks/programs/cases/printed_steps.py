"""Trains a perceptron in numpy, prints each hundredth step, and keeps every gradient."""

import sys
import time

import numpy as np

rng = np.random.default_rng(0)
w1, w2 = rng.normal(size=(64, 24)) * 0.1, rng.normal(size=(24, 1)) * 0.1
gradients = []
step = 0
t0 = time.time()
while True:
    x = rng.normal(size=(32, 64))
    y = x[:, :1] * x[:, 1:2]
    hidden = np.tanh(x @ w1)
    error = hidden @ w2 - y
    g2 = hidden.T @ error / 32
    g1 = x.T @ (error @ w2.T * (1 - hidden**2)) / 32
    w1 -= 0.05 * g1
    w2 -= 0.05 * g2
    gradients.append((g1, g2))
    step += 1
    if step % 100 == 0:
        print(f"step {step} loss {float((error**2).mean()):.4f}", flush=True)
    if time.time() - t0 > float(sys.argv[1]):
        break
    time.sleep(0.008)
print(f"{step} steps in {time.time() - t0:.1f} s")
