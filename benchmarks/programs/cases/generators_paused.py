"""Reads only the first line of many streams, and keeps each reader with its buffer."""

import sys
import time
from collections.abc import Iterator


def lines(number: int) -> Iterator[str]:
    buffer = (f"{number:08d} line of text that is not read\n" * 800).encode()
    position = 0
    while position < len(buffer):
        end = buffer.index(b"\n", position)
        yield buffer[position:end].decode()
        position = end + 1


def main() -> None:
    readers: dict[int, Iterator[str]] = {}
    start, n = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        due = time.time() + 0.05
        reader = lines(n)
        next(reader)
        readers[n] = reader
        n += 1
        time.sleep(max(0.0, due - time.time()))
    print(f"{n} streams in {time.time() - start:.1f} s, {len(readers)} open")


if __name__ == "__main__":
    main()
