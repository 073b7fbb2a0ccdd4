"""Learns from a stream, batch by batch."""

import argparse
import time

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import StandardScaler


def stream(seed: int):
    rng = np.random.default_rng(seed)
    while True:
        x = rng.normal(size=(300, 50))
        yield x, (x[:, 0] + 0.1 * rng.normal(size=300) > 0).astype(int)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    args = parser.parse_args()
    scaler, model = StandardScaler(), SGDClassifier(loss="log_loss")
    start, batches, accuracy = time.time(), 0, 0.0
    for x, y in stream(0):
        if batches:
            accuracy = 0.9 * accuracy + 0.1 * accuracy_score(y, model.predict(scaler.transform(x)))
        scaler.partial_fit(x)
        model.partial_fit(scaler.transform(x), y, classes=[0, 1])
        batches += 1
        if time.time() - start > args.seconds:
            break
        time.sleep(0.05)
    print(f"accuracy {accuracy:.3f}")
    print(f"{batches} batches in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
