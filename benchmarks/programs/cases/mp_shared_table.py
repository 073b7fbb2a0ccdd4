"""Two processes write into one shared table, in place, and keep nothing."""

import sys
import time
from multiprocessing import Event, Process, shared_memory

import numpy as np

SHAPE = (500, 4000)


def fill(name: str, half: int, stop) -> None:
    memory = shared_memory.SharedMemory(name=name)
    table = np.ndarray(SHAPE, dtype=np.float64, buffer=memory.buf)
    rng, row = np.random.default_rng(half), half
    while not stop.is_set():
        table[row % SHAPE[0]] = rng.normal(size=SHAPE[1])
        row += 2
        time.sleep(0.02)
    del table
    memory.close()


def main() -> None:
    memory = shared_memory.SharedMemory(create=True, size=int(np.prod(SHAPE)) * 8)
    stop = Event()
    writers = [Process(target=fill, args=(memory.name, half, stop)) for half in (0, 1)]
    for writer in writers:
        writer.start()
    start, looks = time.time(), 0
    table = np.ndarray(SHAPE, dtype=np.float64, buffer=memory.buf)
    while time.time() - start < float(sys.argv[1]):
        table[looks % SHAPE[0]].std()
        looks += 1
        time.sleep(0.1)
    stop.set()
    for writer in writers:
        writer.join()
    del table
    memory.close()
    memory.unlink()
    print(f"{looks} looks in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
