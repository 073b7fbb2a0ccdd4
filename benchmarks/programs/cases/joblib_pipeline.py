"""A pipeline whose transformers are cached on disk; the grid comes round again and again."""

import itertools
import shutil
import sys
import tempfile
import time

import numpy as np
from joblib import Memory
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler


def main() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 30))
    y = (x[:, 0] + x[:, 1] ** 2 > 1).astype(int)
    folder = tempfile.mkdtemp()
    pipeline = Pipeline(
        [("scale", StandardScaler()), ("pca", PCA(random_state=0)), ("fit", LogisticRegression())],
        memory=Memory(folder, verbose=0),
    )
    grid = ParameterGrid({"pca__n_components": range(3, 27), "fit__C": [0.01, 0.1, 1.0, 10.0]})
    scores: dict[str, float] = {}
    start, n = time.time(), 0
    for parameters in itertools.cycle(grid):
        due = time.time() + 0.1
        pipeline.set_params(**parameters).fit(x[:300], y[:300])
        scores[str(parameters)] = pipeline.score(x[300:], y[300:])
        n += 1
        time.sleep(max(0.0, due - time.time()))
        if time.time() - start > float(sys.argv[1]):
            break
    shutil.rmtree(folder)
    print("best", max(scores, key=scores.__getitem__))
    print(f"{n} fits in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
