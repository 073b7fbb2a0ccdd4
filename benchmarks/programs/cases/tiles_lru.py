"""Cuts a large picture into tiles; the last tiles asked for stay decoded."""

import io
import random
import sys
import time
from collections import OrderedDict

from PIL import Image, ImageDraw, ImageFilter

TILE = 96


class Pyramid:
    def __init__(self, most: int) -> None:
        self.most = most
        self.picture = Image.new("RGB", (4096, 2048), "navy")
        draw = ImageDraw.Draw(self.picture)
        for x in range(0, 4096, 64):
            draw.ellipse((x, x // 2, x + 90, x // 2 + 70), fill=(x % 255, 90, 160))
        self.tiles: OrderedDict = OrderedDict()

    def tile(self, x: int, y: int) -> Image.Image:
        if (x, y) in self.tiles:
            self.tiles.move_to_end((x, y))
            return self.tiles[x, y]
        box = (x * TILE, y * TILE, (x + 1) * TILE, (y + 1) * TILE)
        tile = self.picture.crop(box).filter(ImageFilter.SHARPEN)
        self.tiles[x, y] = tile
        if len(self.tiles) > self.most:
            self.tiles.popitem(last=False)
        return tile


def main() -> None:
    seconds = float(sys.argv[1])
    pyramid = Pyramid(most=int(seconds * 4))
    rng = random.Random(0)
    start, n, sent = time.time(), 0, 0
    while time.time() - start < seconds:
        answer = io.BytesIO()
        pyramid.tile(rng.randrange(42), rng.randrange(21)).save(answer, "JPEG", quality=80)
        sent += len(answer.getvalue())
        n += 1
        time.sleep(0.05)
    print(f"{sent / 1e6:.1f} MB sent")
    print(f"{n} tiles in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
