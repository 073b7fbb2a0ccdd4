"""Every request is written to a table in memory, and no row is ever deleted."""

import os
import sqlite3
import sys
import time


def handle(db: sqlite3.Connection, number: int) -> int:
    body = os.urandom(12_000)
    with db:
        db.execute("INSERT INTO audit (at, path, body) VALUES (?, ?, ?)", (time.time(), "/", body))
    found = db.execute("SELECT length(body) FROM audit WHERE id = ?", (number,)).fetchone()
    return found[0] if found else 0


def main() -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE audit (id INTEGER PRIMARY KEY, at REAL, path TEXT, body BLOB)")
    start, requests, seen = time.time(), 0, 0
    while time.time() - start < float(sys.argv[1]):
        requests += 1
        seen += handle(db, requests)
        time.sleep(0.03)
    print(f"{requests} requests in {time.time() - start:.1f} s, {seen} bytes")


if __name__ == "__main__":
    main()
