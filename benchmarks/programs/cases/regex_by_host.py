"""Parses access logs with a compiled pattern and totals for each host of the site."""

import random
import re
import sys
import time
from collections import defaultdict

LINE = '{host} - [{when}] "GET /{path} HTTP/1.1" {code} {size}'


class HostParser:
    def __init__(self, host: str) -> None:
        self.pattern = re.compile(
            re.escape(host) + r' - \[(?P<when>\d+)\] "(?P<verb>GET|POST) (?P<path>/[\w/]*) '
            r'HTTP/(?P<version>[\d.]+)" (?P<code>\d{3}) (?P<size>\d+)'
        )
        self.sizes: dict[str, list[int]] = defaultdict(lambda: [0, 0])

    def take(self, line: str) -> None:
        if match := self.pattern.match(line):
            total = self.sizes[match["path"]]
            total[0] += 1
            total[1] += int(match["size"])


def main() -> None:
    seconds = float(sys.argv[1])
    hosts = [f"node{number}.example.org" for number in range(int(seconds * 5))]
    paths = [f"{section}/{page}" for section in ("docs", "blog", "api") for page in range(40)]
    parsers: dict[str, HostParser] = {}
    rng = random.Random(2)
    start, n = time.time(), 0
    while time.time() - start < seconds:
        for host in rng.sample(hosts, 3):
            if host not in parsers:
                parsers[host] = HostParser(host)
            for path in paths:
                line = LINE.format(host=host, when=n, path=path, code=200, size=n % 997)
                parsers[host].take(line)
        n += 1
        time.sleep(0.04)
    print(f"{len(parsers)} hosts")
    print(f"{n} batches in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
