"""Augmented images are remembered by their parameters, which are never the same twice."""

import random
import sys
import time

import numpy as np
from PIL import Image, ImageEnhance


class Augmenter:
    def __init__(self, image: Image.Image) -> None:
        self.image = image
        self.done: dict[tuple[float, float], Image.Image] = {}

    def __call__(self, angle: float, light: float) -> Image.Image:
        key = (angle, light)
        if key not in self.done:
            turned = self.image.rotate(angle, resample=Image.Resampling.BILINEAR)
            small = ImageEnhance.Brightness(turned).enhance(light).resize((64, 64))
            self.done[key] = small.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return self.done[key]


def main() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (256, 256, 3), dtype=np.uint8)
    augment, random_ = Augmenter(Image.fromarray(pixels)), random.Random(0)
    start, images, total = time.time(), 0, 0.0
    while time.time() - start < float(sys.argv[1]):
        image = augment(random_.uniform(-30, 30), random_.uniform(0.5, 1.5))
        total += float(np.asarray(image, dtype=np.float32).mean())
        images += 1
        time.sleep(0.03)
    print(f"{images} images in {time.time() - start:.1f} s, {total:.0f}")


if __name__ == "__main__":
    main()
