"""A table in memory holds the requests of the last seconds; older ones are deleted."""

import os
import sqlite3
import sys
import time


def main() -> None:
    seconds = float(sys.argv[1])
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE recent (at REAL, body BLOB)")
    start, requests = time.time(), 0
    while time.time() - start < seconds:
        now = time.time()
        with db:
            db.execute("INSERT INTO recent VALUES (?, ?)", (now, os.urandom(20_000)))
            db.execute("DELETE FROM recent WHERE at < ?", (now - seconds / 5,))
        requests += 1
        time.sleep(0.03)
    (rows,) = db.execute("SELECT count(*) FROM recent").fetchone()
    print(f"{requests} requests in {time.time() - start:.1f} s, {rows} rows")


if __name__ == "__main__":
    main()
