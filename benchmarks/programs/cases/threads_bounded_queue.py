"""A producer and a consumer with a queue between them, which is full after a while."""

import os
import sys
import threading
import time
from queue import Queue

SECONDS = float(sys.argv[1])


class Producer(threading.Thread):
    def __init__(self, queue: Queue) -> None:
        super().__init__(daemon=True)
        self.queue = queue

    def run(self) -> None:
        while True:
            self.queue.put(os.urandom(100_000))
            time.sleep(0.015)


def main() -> None:
    queue: Queue = Queue(maxsize=int(SECONDS * 6))
    Producer(queue).start()
    start, taken = time.time(), 0
    while time.time() - start < SECONDS:
        sum(queue.get()[::5000])
        taken += 1
        time.sleep(0.03)
    print(f"{taken} blocks in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
