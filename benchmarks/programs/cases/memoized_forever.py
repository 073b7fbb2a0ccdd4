"""functools.cache on a function whose argument is never the same twice."""

import functools
import itertools
import sys
import time


@functools.cache
def factors(number: int) -> tuple[tuple[float, int], ...]:
    return tuple((number / (1 + k), number % (2 + k)) for k in range(60))


def main() -> None:
    start, total = time.time(), 0.0
    for number in itertools.count(10**9):
        total += factors(number)[3][0]
        if time.time() - start > float(sys.argv[1]):
            break
        time.sleep(0.02)
    print(f"{number - 10**9 + 1} numbers in {time.time() - start:.1f} s, {total:.0f}")


if __name__ == "__main__":
    main()
