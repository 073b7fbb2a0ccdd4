"""Trainings that save and stop under memory pressure: `guarded.py CASE`. Prints the steps taken."""

import contextlib
import io
import os
import sys

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
os.environ.setdefault("KERAS_BACKEND", "torch")
STEPS, BATCH = 40, 4
LEVELS = {"save_on": "warn", "stop_on": "critical"}


def network():
    import torch
    from torch import nn

    torch.set_num_threads(1)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


def samples():
    import torch

    return [{"x": torch.randn(8), "labels": torch.randn(1)} for _ in range(STEPS * BATCH)]


def transformers():
    import torch
    from transformers import Trainer, TrainingArguments

    from memdiag.integrations.transformers import MemdiagCallback

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = network()

        def forward(self, x, labels):
            out = self.body(x)
            return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}

    arguments = TrainingArguments(
        output_dir="out",
        num_train_epochs=1,
        per_device_train_batch_size=BATCH,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    callbacks = [MemdiagCallback(**LEVELS)]
    trainer = Trainer(model=Model(), args=arguments, train_dataset=samples(), callbacks=callbacks)
    trainer.train()
    return trainer.state.global_step


def lightning():
    import torch
    from lightning import pytorch as pl

    from memdiag.integrations.lightning import MemdiagCallback

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.body = network()

        def training_step(self, batch, index):
            return self.body(batch["x"]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        callbacks=[MemdiagCallback("saved", **LEVELS)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(samples(), batch_size=BATCH))
    return trainer.global_step


def accelerate():
    import torch
    from accelerate import Accelerator

    from memdiag.integrations.accelerate import MemdiagGuard

    accelerator = Accelerator(cpu=True)
    model = network()
    model, optimizer, loader = accelerator.prepare(
        model,
        torch.optim.AdamW(model.parameters()),
        torch.utils.data.DataLoader(samples(), batch_size=BATCH),
    )
    guard, steps = MemdiagGuard(accelerator, "saved", **LEVELS), 0
    for batch in loader:
        steps += 1
        accelerator.backward(model(batch["x"]).square().mean())
        optimizer.step()
        optimizer.zero_grad()
        if guard.step():
            break
    return steps


def keras():
    import keras as k
    import numpy as np

    from memdiag.integrations.keras import MemdiagCallback

    model = k.Sequential([k.layers.Input((8,)), k.layers.Dense(1)])
    model.compile("adam", "mse")
    count = STEPS * BATCH
    x, y = np.random.rand(count, 8), np.random.rand(count, 1)
    seen = []
    counting = k.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
    callbacks = [MemdiagCallback("saved.keras", **LEVELS), counting]
    model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=callbacks)
    return len(seen)


def ignite():
    import torch
    from ignite.engine import Engine

    from memdiag.integrations.ignite import MemdiagHandler

    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def train(engine, batch):
        optimizer.zero_grad()
        model(batch["x"]).square().mean().backward()
        optimizer.step()

    trainer = Engine(train)
    MemdiagHandler(lambda _: torch.save(model.state_dict(), "saved"), **LEVELS).attach(trainer)
    trainer.run(torch.utils.data.DataLoader(samples(), batch_size=BATCH))
    return trainer.state.iteration


def main():
    with contextlib.redirect_stdout(io.StringIO()):
        steps = globals()[sys.argv[1]]()
    print(steps)


if __name__ == "__main__":
    main()
