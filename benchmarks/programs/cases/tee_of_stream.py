"""itertools.tee over an endless stream; only one of the two branches is read."""

import itertools
import random
import statistics
import sys
import time


def measurements():
    number = 0
    while True:
        number += 1
        yield {"id": number, "values": [random.random() for _ in range(150)]}


def main():
    seconds = float(sys.argv[1])
    first, second = itertools.tee(measurements())
    start = time.time()
    count = 0
    for item in first:
        statistics.fmean(item["values"])
        count += 1
        if time.time() - start > seconds:
            break
        time.sleep(0.03)
    print("first", next(second)["id"])
    print(f"{count} items in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
