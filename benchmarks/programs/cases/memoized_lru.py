"""lru_cache on a function whose argument is never the same twice; full within a third."""

import functools
import itertools
import sys
import time


@functools.lru_cache(maxsize=150)
def factors(number: int) -> list[float]:
    return [number / (1 + k) for k in range(3_000)]


def main() -> None:
    start, total = time.time(), 0.0
    for number in itertools.count(10**9):
        total += factors(number)[3]
        if time.time() - start > float(sys.argv[1]):
            break
        time.sleep(0.04)
    print(f"{number - 10**9 + 1} numbers in {time.time() - start:.1f} s, {total:.0f}")


if __name__ == "__main__":
    main()
