"""A replay buffer that is full after a third of the time."""

from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model, buffer = Model(), []
    for step in clock.steps():
        x = batch(128)
        model.train(x)
        if clock.done < 1 / 3 or not buffer:
            buffer.append(x)
        else:
            buffer[step % len(buffer)] = x


if __name__ == "__main__":
    run(train)
