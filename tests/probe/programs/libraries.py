"""Programs whose iterations a library reports: `libraries.py NAME`. Python 3.8 syntax.

The comment `step:NAME` marks the line that the report must name.
"""

import sys

from counting import more, own, work


def bars():
    from tqdm import tqdm

    while more():
        for _ in tqdm(range(50)):  # step:bars
            work()


def updates():
    from tqdm import tqdm

    bar = tqdm(total=1000)
    while more():
        work()
        bar.update(16)  # step:updates


def fits():
    import sklearn.estimators

    model = sklearn.estimators.Model()
    while more():
        model.fit(work)  # step:fits
    try:
        model.fit(None)
    except TypeError as error:
        frames, trace = [], error.__traceback__
        while trace is not None:
            frames.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        assert frames == ["fits", "wrapper", "fit"], frames


def episodes():
    import gymnasium

    environment = gymnasium.wrappers.OrderEnforcing()
    while more():
        assert environment.reset(seed=own[0]) == own[0]  # step:episodes
        work()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print(own[0] > 0, flush=True)
