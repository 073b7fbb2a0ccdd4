"""Keras, with a schedule for the learning rate."""

import sys

from _keras import fit, keras

if __name__ == "__main__":
    slower = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.99)
    fit(float(sys.argv[1]), slower)
