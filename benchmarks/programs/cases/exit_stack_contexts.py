"""A pipeline enters a context for each item in one ExitStack, which is closed only at the end."""

import contextlib
import sys
import time
from collections.abc import Iterator


@contextlib.contextmanager
def scratch(size: int) -> Iterator[bytearray]:
    buffer = bytearray(size)
    try:
        yield buffer
    finally:
        buffer.clear()


def main() -> None:
    start, items, total = time.time(), 0, 0
    with contextlib.ExitStack() as stack:
        while time.time() - start < float(sys.argv[1]):
            buffer = stack.enter_context(scratch(12_000))
            buffer[items % 12_000] = 1
            total += sum(buffer)
            items += 1
            time.sleep(0.03)
    print(f"{items} items in {time.time() - start:.1f} s, {total}")


if __name__ == "__main__":
    main()
