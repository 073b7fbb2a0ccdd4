"""The frame of each report is kept in a dictionary by its hour."""

import sys
import time

import polars as pl


class Reports:
    def __init__(self) -> None:
        self.by_hour: dict[int, pl.DataFrame] = {}

    def add(self, hour: int) -> float:
        rows = 4_000
        frame = pl.DataFrame({"row": pl.arange(0, rows, eager=True)}).with_columns(
            (pl.col("row") * 0.5 + hour).alias("price"), (pl.col("row") % 7).alias("shop")
        )
        self.by_hour[hour] = frame
        return frame["price"].sum()


def main() -> None:
    reports, start, hour, total = Reports(), time.time(), 0, 0.0
    while time.time() - start < float(sys.argv[1]):
        hour += 1
        total += reports.add(hour)
        time.sleep(0.1)
    print(f"{hour} reports in {time.time() - start:.1f} s, {total:.0f}")


if __name__ == "__main__":
    main()
