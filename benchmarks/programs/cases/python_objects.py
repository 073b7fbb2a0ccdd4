"""A log of dictionaries, strings and numbers."""

from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model, log = Model(), []
    for step in clock.steps():
        model.train(batch())
        log.append([{"step": step, "n": n, "text": f"{step}/{n}"} for n in range(40)])


if __name__ == "__main__":
    run(train)
