"""Fetches pages and remembers each finished task."""

import asyncio
import random
import sys
import time


class Crawler:
    def __init__(self) -> None:
        self.tasks: set[asyncio.Task] = set()

    async def fetch(self, number: int) -> bytes:
        await asyncio.sleep(random.uniform(0.001, 0.05))
        return b"%08d" % number * 3000

    async def run(self, seconds: float) -> int:
        loop = asyncio.get_running_loop()
        end, number = loop.time() + seconds, 0
        while loop.time() < end:
            self.tasks.add(asyncio.create_task(self.fetch(number)))
            number += 1
            await asyncio.sleep(0.05)
        await asyncio.gather(*self.tasks)
        return number


def main() -> None:
    start = time.time()
    pages = asyncio.run(Crawler().run(float(sys.argv[1])))
    print(f"{pages} pages in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
