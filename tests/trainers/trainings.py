"""Trainings by other people's trainers: `trainings.py CASE`. Prints the true number of steps.

The callbacks for the explicit form are in where the second word is `explicit`.
"""

import contextlib
import io
import os
import sys
import tempfile
import time
import warnings

os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
os.environ.setdefault("KERAS_BACKEND", "torch")
warnings.simplefilter("ignore")
EXPLICIT = sys.argv[2:] == ["explicit"]
EPOCHS, BATCHES, BATCH = 3, 20, 4


def network():
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


def samples(count=BATCHES * BATCH):
    import torch

    return [{"x": torch.randn(8), "labels": torch.randn(1)} for _ in range(count)]


def transformers():
    import torch
    from transformers import Trainer, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = network()

        def forward(self, x, labels):
            out = self.body(x)
            return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}

    callbacks = []
    if EXPLICIT:
        from memdiag.integrations.transformers import MemdiagCallback

        callbacks.append(MemdiagCallback())
    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(
            output_dir=directory,
            num_train_epochs=EPOCHS,
            per_device_train_batch_size=BATCH,
            gradient_accumulation_steps=2,
            eval_strategy="epoch",
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=Model(),
            args=arguments,
            train_dataset=samples(),
            eval_dataset=samples(8),
            callbacks=callbacks,
        )
        trainer.train()
    return trainer.state.global_step


def lightning():
    import torch
    from lightning import pytorch as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.body = network()

        def training_step(self, batch, index):
            return self.body(batch["x"]).square().mean()

        def validation_step(self, batch, index):
            self.body(batch["x"])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    callbacks = []
    if EXPLICIT:
        from memdiag.integrations.lightning import MemdiagCallback

        callbacks.append(MemdiagCallback())
    with tempfile.TemporaryDirectory() as directory:
        trainer = pl.Trainer(
            max_epochs=EPOCHS,
            accumulate_grad_batches=2,
            accelerator="cpu",
            callbacks=callbacks,
            default_root_dir=directory,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        loaders = [torch.utils.data.DataLoader(samples(n), batch_size=BATCH) for n in (80, 8)]
        trainer.fit(Module(), *loaders)
    return trainer.global_step


def accelerate():
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    model = network()
    model, optimizer, loader = accelerator.prepare(
        model,
        torch.optim.AdamW(model.parameters()),
        torch.utils.data.DataLoader(samples(), batch_size=BATCH),
    )
    for _ in range(EPOCHS):
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(batch["x"]).square().mean())
                optimizer.step()
                optimizer.zero_grad()
    return EPOCHS * BATCHES // 4


def keras():
    import keras as k
    import numpy as np

    model = k.Sequential([k.layers.Input((8,)), k.layers.Dense(16), k.layers.Dense(1)])
    model.compile("adam", "mse")
    x, y = np.random.rand(80, 8), np.random.rand(80, 1)
    validation = (x[:8], y[:8])
    for _ in range(EPOCHS):
        model.fit(x, y, batch_size=BATCH, epochs=1, validation_data=validation, verbose=0)
    model.predict(x, verbose=0)
    return EPOCHS * BATCHES


def jax():
    import jax as j
    import jax.numpy as jnp

    import memdiag

    def loss(weight, x):
        return jnp.square(jnp.tanh(x @ weight) - x).mean()

    @j.jit
    def train(weight, x):
        value, gradient = j.value_and_grad(loss)(weight, x)
        return weight - 0.01 * gradient, value

    weight, kept = jnp.eye(64), []
    for step in range(1, EPOCHS * BATCHES + 1):
        x = j.random.normal(j.random.PRNGKey(step), (256, 64))
        weight, value = train(weight, x)
        kept.append(x)
        memdiag.step(step)
        time.sleep(0.1)  # JAX is not asked for its arrays more often than a second or so
    assert bool(jnp.isfinite(value))
    return EPOCHS * BATCHES


def main():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        steps = globals()[sys.argv[1]]()
    print(steps)


if __name__ == "__main__":
    main()
