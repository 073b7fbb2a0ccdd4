"""A Trainer that keeps the logits of every step, to compute a metric some day."""

import sys

from _transformers import train
from transformers import Trainer


class MetricTrainer(Trainer):
    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.all_logits = []

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        loss, outputs = super().compute_loss(
            model, inputs, return_outputs=True, num_items_in_batch=num_items_in_batch
        )
        self.all_logits.append(outputs.logits.detach().cpu())
        return (loss, outputs) if return_outputs else loss


if __name__ == "__main__":
    train(float(sys.argv[1]), kind=MetricTrainer)
