"""Three threads work on jobs; nobody takes their results out of the queue."""

import queue
import sys
import threading
import time

import numpy as np

jobs: queue.Queue = queue.Queue(maxsize=10)
results: queue.Queue = queue.Queue()


def work() -> None:
    while (seed := jobs.get()) is not None:
        rng = np.random.default_rng(seed)
        results.put((seed, np.sort(rng.random(5000))))
        jobs.task_done()


def main() -> None:
    workers = [threading.Thread(target=work, name=f"worker-{i}") for i in range(3)]
    for worker in workers:
        worker.start()
    start, n = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        jobs.put(n)
        n += 1
        time.sleep(0.04)
    for _ in workers:
        jobs.put(None)
    for worker in workers:
        worker.join()
    print(f"{n} jobs in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
