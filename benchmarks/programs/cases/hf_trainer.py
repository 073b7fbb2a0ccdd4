"""Transformers' Trainer as it is."""

import sys

from _transformers import train

if __name__ == "__main__":
    train(float(sys.argv[1]))
