"""Federated averaging: three clients train for four steps each, and the server keeps what each of
them has sent in each round."""

import copy

import torch
import torch.nn.functional as F  # noqa: N812
from _training import WIDTH, Clock, batch, run
from torch import nn

CLIENTS, LOCAL_STEPS = 3, 4


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, WIDTH))


def average(states: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    return {name: torch.stack([s[name] for s in states]).mean(0) for name in states[0]}


def train(clock: Clock) -> None:
    server, clients = network(), [network() for _ in range(CLIENTS)]
    rounds: list[list[dict[str, torch.Tensor]]] = []
    steps = clock.steps()
    while clock.done < 1:
        sent = []
        for client in clients:
            client.load_state_dict(server.state_dict())
            optimizer = torch.optim.SGD(client.parameters(), lr=1e-3)
            for _, _ in zip(range(LOCAL_STEPS), steps, strict=False):
                x = batch()
                optimizer.zero_grad()
                F.mse_loss(client(x), x).backward()
                optimizer.step()
            sent.append(copy.deepcopy(client.state_dict()))
        server.load_state_dict(average(sent))
        rounds.append(sent)


if __name__ == "__main__":
    run(train)
