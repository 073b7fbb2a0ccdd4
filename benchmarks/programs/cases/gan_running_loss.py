"""A GAN, whose mean loss for the log is a sum that still has its graph."""

import sys
import time
from itertools import pairwise

import torch
from torch import nn

LATENT, PIXELS, BATCH = 16, 64, 32


def mlp(*sizes: int) -> nn.Sequential:
    layers = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


generator = mlp(LATENT, 64, 64, 64, PIXELS)
critic = mlp(PIXELS, 64, 64, 64, 1)
bce = nn.BCEWithLogitsLoss()
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)

torch.set_num_threads(1)
running_g = running_d = 0.0
start = time.time()
n = 0
while time.time() - start < float(sys.argv[1]):
    due = time.time() + 0.05
    real = torch.sin(torch.rand(BATCH, 1) * 6 + torch.linspace(0, 6, PIXELS))
    fake = generator(torch.randn(BATCH, LATENT))

    opt_d.zero_grad()
    loss_d = bce(critic(real), ones) + bce(critic(fake.detach()), zeros)
    loss_d.backward()
    opt_d.step()

    opt_g.zero_grad()
    loss_g = bce(critic(fake), ones)
    loss_g.backward()
    opt_g.step()

    running_g += loss_g
    running_d += loss_d
    n += 1
    time.sleep(max(0.0, due - time.time()))

print(f"generator {float(running_g) / n:.3f}, critic {float(running_d) / n:.3f}")
print(f"{n} steps in {time.time() - start:.1f} s")
