"""Lightning, with nothing kept."""

import sys

from _lightning import AutoEncoder, fit

if __name__ == "__main__":
    fit(AutoEncoder(), float(sys.argv[1]), gradient_clip_val=1.0)
