"""REINFORCE with an entropy term that nobody clears after an episode."""

import sys
import time

import torch
from _cart import CartPole
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 128), nn.Tanh(), nn.Linear(128, 2))
        self.log_probs: list[torch.Tensor] = []
        self.entropies: list[torch.Tensor] = []

    def act(self, state: torch.Tensor) -> int:
        choice = Categorical(logits=self.body(state))
        action = choice.sample()
        self.log_probs.append(choice.log_prob(action))
        self.entropies.append(choice.entropy())
        return int(action)


def episode(env: CartPole, policy: Policy, length: int) -> None:
    state, _ = env.reset()
    for _ in range(length):
        state, _, done, _, _ = env.step(policy.act(torch.from_numpy(state)))
        if done:
            state, _ = env.reset()


def main() -> None:
    torch.set_num_threads(1)
    env, policy = CartPole(), Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    began, updates = time.time(), 0
    while time.time() - began < float(sys.argv[1]):
        episode(env, policy, length=10)
        loss = -torch.stack(policy.log_probs).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        policy.log_probs.clear()
        updates += 1
        time.sleep(0.03)
    print(f"{updates} updates in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
