"""A crawler over a made-up site: the parsed tree of every page hangs on its address."""

import random
import sys
import time
from html.parser import HTMLParser
from urllib.parse import urljoin


class Node:
    def __init__(self, tag, attributes, parent):
        self.tag = tag
        self.attributes = dict(attributes)
        self.parent = parent
        self.children = []
        self.text = ""


class TreeBuilder(HTMLParser):
    def __init__(self):
        super().__init__()
        self.root = self.here = Node("root", [], None)

    def handle_starttag(self, tag, attrs):
        node = Node(tag, attrs, self.here)
        self.here.children.append(node)
        self.here = node

    def handle_endtag(self, tag):
        if self.here.parent is not None:
            self.here = self.here.parent

    def handle_data(self, data):
        self.here.text += data


def fetch(url):
    rng = random.Random(url)
    items = []
    for _ in range(30):
        words = " ".join(f"{rng.randrange(1 << 20):05x}" for _ in range(6))
        href = f"/p/{rng.randrange(10**9)}"
        items.append(f'<li class="item"><a href="{href}">{words}</a></li>')
    return f"<html><body><ul>{''.join(items)}</ul></body></html>"


def links(node):
    if node.tag == "a":
        yield node.attributes["href"]
    for child in node.children:
        yield from links(child)


pages = {}
todo = ["https://example.org/"]
start = time.time()
while time.time() - start < float(sys.argv[1]):
    due = time.time() + 0.06
    url = todo.pop()
    if url in pages:
        continue
    builder = TreeBuilder()
    builder.feed(fetch(url))
    pages[url] = builder.root
    todo = [urljoin(url, link) for link in links(builder.root)]
    time.sleep(max(0.0, due - time.time()))

print(f"{len(pages)} pages in {time.time() - start:.1f} s")
