"""Looks up records in a file that is mapped into memory; all of it was read after a quarter."""

import mmap
import os
import sys
import tempfile
import time

RECORD, RECORDS = 64_000, 1_000


def main() -> None:
    seconds = float(sys.argv[1])
    with tempfile.TemporaryFile() as file:
        for number in range(RECORDS):
            file.write(number.to_bytes(4, "little") + os.urandom(RECORD - 4))
        file.flush()
        start, lookups, last = time.time(), 0, 0
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as records:
            while time.time() - start < seconds:
                reached = min(RECORDS, 1 + int(4 * RECORDS * (time.time() - start) / seconds))
                for number in range(last, reached):
                    assert sum(records[number * RECORD : (number + 1) * RECORD : 4096]) > 0
                last = reached % RECORDS
                lookups += 1
                time.sleep(0.03)
    print(f"{lookups} lookups in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
