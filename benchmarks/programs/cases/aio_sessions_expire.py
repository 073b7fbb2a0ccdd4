"""Sessions live for a few seconds and are then removed by a timer."""

import asyncio
import random
import sys
import time


class Sessions:
    def __init__(self, lifetime: float) -> None:
        self.lifetime = lifetime
        self.open: dict[int, bytearray] = {}

    def add(self, key: int) -> None:
        self.open[key] = bytearray(random.randrange(20_000, 60_000))
        asyncio.get_running_loop().call_later(self.lifetime, self.open.pop, key, None)


async def serve(seconds: float) -> int:
    sessions = Sessions(lifetime=min(6.0, seconds / 8))
    end, key = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        sessions.add(key)
        key += 1
        await asyncio.sleep(random.expovariate(40))
    return key


start = time.monotonic()
total = asyncio.run(serve(float(sys.argv[1])))
print(f"{total} sessions in {time.monotonic() - start:.1f} s")
