"""A child of multiprocessing that keeps more and more, without libraries or collections."""

import gc
import multiprocessing
import sys
import time


def work():
    gc.disable()
    rows = []
    until = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < until:
        rows.append(f"row {len(rows)}" * 1000)
        sum(range(20000))
        time.sleep(0.002)


if __name__ == "__main__":
    gc.disable()
    child = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    child.start()
    child.join()
    print(child.exitcode)
