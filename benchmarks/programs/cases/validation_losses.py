"""A classifier with a validation pass, which forgets torch.no_grad()."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
torch.set_num_threads(1)
train_set = TensorDataset(torch.randn(20 * 64, 40), torch.randint(0, 5, (20 * 64,)))
val_set = TensorDataset(torch.randn(4 * 64, 40), torch.randint(0, 5, (4 * 64,)))
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=64)

net = nn.Sequential(nn.Linear(40, 256), nn.Tanh(), nn.Dropout(0.1), nn.Linear(256, 5))
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()
val_history = []

began = time.time()
seconds = float(sys.argv[1])
steps = epoch = 0
while time.time() - began < seconds:
    epoch += 1
    net.train()
    for x, y in train_loader:
        opt.zero_grad()
        loss_fn(net(x), y).backward()
        opt.step()
        steps += 1
        time.sleep(0.02)
    net.eval()
    total = 0.0
    for x, y in val_loader:
        total = total + loss_fn(net(x), y)
    val_history.append(total / len(val_loader))
print(f"best {min(val_history).item():.3f} after {epoch} epochs")
print(f"{steps} steps in {time.time() - began:.1f} s")
