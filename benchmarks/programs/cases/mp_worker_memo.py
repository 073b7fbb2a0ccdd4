"""A worker process answers questions and remembers every answer; the parent does not."""

import argparse
import time
from multiprocessing import Pipe, Process

import numpy as np


def answer(pipe) -> None:
    memo: dict[int, np.ndarray] = {}
    while (question := pipe.recv()) is not None:
        if question not in memo:
            memo[question] = np.random.default_rng(question).random(6000)
        pipe.send(float(memo[question].mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    args = parser.parse_args()
    here, there = Pipe()
    process = Process(target=answer, args=(there,), name="Answerer", daemon=True)
    process.start()
    start, n = time.time(), 0
    while time.time() - start < args.seconds:
        due = time.time() + 0.05
        here.send(n)
        here.recv()
        n += 1
        time.sleep(max(0.0, due - time.time()))
    here.send(None)
    process.join()
    print(f"{n} questions in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
