"""Keeps the raw answers of a service, and a dictionary for each of their scores."""

from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model, answers, scores = Model(), [], []
    for step in clock.steps():
        model.train(batch())
        answers.append(b"%d" % step * (6000 // len(b"%d" % step)))
        scores.append([{"step": step, "score": f"{step}/{n}"} for n in range(10)])


if __name__ == "__main__":
    run(train)
