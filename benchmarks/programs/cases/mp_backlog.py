"""A reader process decodes faster than the trainer takes them: its queue's backlog grows."""

import itertools
import multiprocessing as mp
import sys
import time

import numpy as np


def read(queue) -> None:
    rng = np.random.default_rng(0)
    for due in ticks(0.03):
        queue.put(rng.integers(0, 255, size=(3, 64, 64), dtype=np.uint8).astype(np.float32))
        time.sleep(max(0.0, due - time.time()))


def ticks(each_s: float):
    return itertools.count(time.time() + each_s, each_s)


def main() -> None:
    context = mp.get_context("fork")
    queue = context.Queue()  # without maxsize
    reader = context.Process(target=read, args=(queue,), name="Reader", daemon=True)
    reader.start()
    weights = np.zeros(64)
    start, n = time.time(), 0
    for due in ticks(0.09):
        image = queue.get()
        weights += 0.01 * (image.mean(axis=(1, 2)).mean() / 255 - weights)
        n += 1
        time.sleep(max(0.0, due - time.time()))
        if time.time() - start > float(sys.argv[1]):
            break
    reader.terminate()
    reader.join()
    print(weights[:4].round(3))
    print(f"{n} images in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
