"""Names pass through a C library, whose copies nobody frees."""

import ctypes
import sys
import time

libc = ctypes.CDLL(None)
libc.strdup.restype = ctypes.c_void_p
libc.strdup.argtypes = [ctypes.c_char_p]
libc.strlen.argtypes = [ctypes.c_void_p]


class Label:
    """What a binding returns; it has no __del__ that frees."""

    def __init__(self, text: str) -> None:
        self.pointer = libc.strdup(text.encode())

    def __len__(self) -> int:
        return libc.strlen(self.pointer)


def document(number: int) -> list[str]:
    return [f"document {number} line {line} " + "lorem ipsum " * 60 for line in range(40)]


def main() -> None:
    start, n, total = time.perf_counter(), 0, 0
    while time.perf_counter() - start < float(sys.argv[1]):
        total += sum(len(Label(line)) for line in document(n))
        n += 1
        time.sleep(0.05)
    print(f"{total} characters")
    print(f"{n} documents in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
