"""DQN on a cart and pole. Its replay memory is full after a third of the time."""

import random
import sys
import time
from collections import deque

import numpy as np
import torch
from _cart import CartPole
from torch import nn

PACE = 0.05
FRAME = 5000  # "pixels" that go with each state


class Agent:
    def __init__(self, capacity: int) -> None:
        self.memory: deque = deque(maxlen=capacity)
        self.q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.target = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=1e-3)

    def act(self, state: np.ndarray) -> int:
        if random.random() < 0.1:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.q(torch.from_numpy(state)).argmax())

    def learn(self) -> None:
        batch = random.sample(self.memory, min(32, len(self.memory)))
        states, actions, rewards, after, _ = zip(*batch, strict=True)
        with torch.no_grad():
            aim = self.target(torch.tensor(np.array(after))).max(1).values
        values = self.q(torch.tensor(np.array(states)))
        chosen = values.gather(1, torch.tensor(actions)[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(chosen, torch.tensor(rewards) + 0.99 * aim)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def main() -> None:
    torch.set_num_threads(1)
    seconds = float(sys.argv[1])
    env, agent = CartPole(), Agent(int(seconds / PACE / 3))
    state, _ = env.reset()
    start, steps = time.time(), 0
    while time.time() - start < seconds:
        due = time.time() + PACE
        action = agent.act(state)
        after, reward, done, cut, _ = env.step(action)
        agent.memory.append((state, action, reward, after, np.full(FRAME, state[0])))
        state = env.reset()[0] if done or cut else after
        agent.learn()
        steps += 1
        if steps % 100 == 0:
            agent.target.load_state_dict(agent.q.state_dict())
        time.sleep(max(0.0, due - time.time()))
    print(f"{steps} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
