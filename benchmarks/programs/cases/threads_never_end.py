"""Starts a thread per request, which waits for an answer that never comes."""

import sys
import threading
import time

import numpy as np


class Server:
    def __init__(self) -> None:
        self.answered = threading.Event()
        self.lock = threading.Lock()
        self.total = 0.0

    def handle(self, number: int) -> None:
        image = np.random.default_rng(number).random((400, 100))
        with self.lock:
            self.total += float(image.mean())
        self.answered.wait()
        print(image.shape)


def main() -> None:
    threading.stack_size(256 * 1024)
    server = Server()
    start, n = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        due = time.time() + 0.2
        threading.Thread(target=server.handle, args=(n,), daemon=True).start()
        n += 1
        time.sleep(max(0.0, due - time.time()))
    print(f"{n} requests in {time.time() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
