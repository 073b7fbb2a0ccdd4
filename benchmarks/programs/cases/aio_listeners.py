"""Each connection adds a listener to a bus, and leaves it there when it closes."""

import asyncio
import json
import sys
import time
from collections.abc import Callable


class Bus:
    def __init__(self) -> None:
        self.listeners: list[Callable[[str], None]] = []

    def emit(self, message: str) -> None:
        for listener in self.listeners:
            listener(message)


async def connection(bus: Bus, number: int) -> None:
    inbox: list[str] = []
    session = {f"field {i}": {"user": f"user {number}", "n": number + i} for i in range(60)}

    def on_message(message: str) -> None:
        if message == session["field 0"]["user"]:
            inbox.append(message)

    bus.listeners.append(on_message)
    await asyncio.sleep(0.02)
    json.dumps(session)


async def main() -> None:
    seconds, bus = float(sys.argv[1]), Bus()
    start, n = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        await asyncio.gather(connection(bus, n), asyncio.sleep(0.05))
        n += 1
        if n % 100 == 0:
            bus.emit("tick")
    print(f"{n} connections in {time.monotonic() - start:.1f} s")


asyncio.run(main())
