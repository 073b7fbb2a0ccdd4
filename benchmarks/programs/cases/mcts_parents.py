"""Monte Carlo tree search for a game without end: the root moves on, but each node knows its
parent, and through it all that was ever searched stays."""

from __future__ import annotations

import math
import random
import sys
import time


class Node:
    def __init__(self, state: int, parent: Node | None) -> None:
        self.state, self.parent = state, parent
        self.children: list[Node] = []
        self.visits, self.value = 0, 0.0

    def expand(self) -> None:
        self.children = [Node((self.state * 31 + move) % 1_000_003, self) for move in range(4)]

    def best(self) -> Node:
        return max(self.children, key=self.score)

    def score(self, child: Node) -> float:
        if not child.visits:
            return math.inf
        return child.value / child.visits + math.sqrt(2 * math.log(self.visits) / child.visits)


def simulate(root: Node, random_: random.Random) -> None:
    node = root
    while node.children:
        node = node.best()
    node.expand()
    result = random_.random() < (node.state % 100) / 100
    while True:
        node.visits += 1
        node.value += result
        if node is root:
            return
        node = node.parent


def main() -> None:
    random_, root = random.Random(1), Node(7, None)
    start, moves = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        for _ in range(24):
            simulate(root, random_)
        root = max(root.children, key=lambda child: child.visits)
        moves += 1
        time.sleep(0.03)
    print(f"{moves} moves in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
