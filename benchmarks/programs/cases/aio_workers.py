"""Workers take jobs from a bounded queue; results are counted and dropped."""

import asyncio
import hashlib
import os
import sys
import time


async def producer(queue: asyncio.Queue, until: float) -> None:
    while time.monotonic() < until:
        await queue.put(os.urandom(50_000))
        await asyncio.sleep(0.01)


async def worker(queue: asyncio.Queue, digests: dict[str, int]) -> None:
    while True:
        data = await queue.get()
        digest = hashlib.sha256(data).hexdigest()[:2]
        digests[digest] = digests.get(digest, 0) + 1
        await asyncio.sleep(0.01)
        queue.task_done()


async def main(seconds: float) -> int:
    queue: asyncio.Queue = asyncio.Queue(maxsize=50)
    digests: dict[str, int] = {}
    workers = [asyncio.create_task(worker(queue, digests)) for _ in range(4)]
    await producer(queue, time.monotonic() + seconds)
    await queue.join()
    for task in workers:
        task.cancel()
    return sum(digests.values())


if __name__ == "__main__":
    began = time.monotonic()
    done = asyncio.run(main(float(sys.argv[1])))
    print(f"{done} jobs in {time.monotonic() - began:.1f} s")
