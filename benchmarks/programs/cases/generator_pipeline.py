"""A chain of generators: read, shuffle with a buffer, batch."""

import random
import sys
import time
from collections.abc import Iterable, Iterator


def read() -> Iterator[list[float]]:
    while True:
        yield [random.random() for _ in range(256)]


def shuffled(items: Iterable, size: int) -> Iterator:
    buffer: list = []
    for item in items:
        if len(buffer) < size:
            buffer.append(item)
            if len(buffer) % 20:
                continue
        index = random.randrange(len(buffer))
        yield buffer[index]
        buffer[index] = item


def batched(items: Iterable, size: int) -> Iterator[list]:
    batch: list = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []


def main() -> None:
    seconds = float(sys.argv[1])
    start, n, checksum = time.time(), 0, 0.0
    for batch in batched(shuffled(read(), size=int(seconds * 80)), size=4):
        checksum += sum(map(sum, batch)) / 1024
        n += 1
        if time.time() - start > seconds:
            break
        time.sleep(0.03)
    print(f"{n} batches in {time.time() - start:.1f} s, mean {checksum / n:.3f}")


if __name__ == "__main__":
    main()
