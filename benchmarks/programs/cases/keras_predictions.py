"""A Keras callback that predicts after each epoch and keeps one prediction, the best."""

import sys

import numpy as np
from _keras import fit, keras


class Best(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.x = np.random.default_rng(0).normal(size=(2000, 48)).astype("float32")
        self.best = (np.inf, None)

    def on_epoch_end(self, epoch, logs=None):
        guess = self.model.predict(self.x, verbose=0)
        loss = float((logs or {}).get("loss", 0.0))
        if loss < self.best[0]:
            self.best = (loss, guess)


if __name__ == "__main__":
    fit(float(sys.argv[1]), Best())
