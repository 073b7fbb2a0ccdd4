"""malloc without free, in a library."""

import ctypes

from _training import Clock, Model, batch, run

LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]


def train(clock: Clock) -> None:
    model = Model()
    for _ in clock.steps():
        model.train(batch())
        ctypes.memset(LIBC.malloc(50_000), 1, 50_000)


if __name__ == "__main__":
    run(train)
