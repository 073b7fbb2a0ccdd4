"""Trainings of many shapes, each in a forked child of one process: `iteration_cases.py [CASE ...]`.

Each tells its name and true number of iterations as a counter of the probe, if there is one.
"""

import os
import sys
import warnings

import torch
import torch._dynamo  # the first optimizer loads it: here once, not in every child
import torch.nn.functional as F  # noqa: N812
from torch import nn

N = 5
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def model():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


def batch():
    return torch.randn(4, 8)


def plain(optimizer, network, *, n=N):
    for _ in range(n):
        optimizer.zero_grad()
        network(batch()).sum().backward()
        optimizer.step()


def of_torch(name, **options):
    def run():
        network = model()
        matrices = [p for p in network.parameters() if p.ndim == 2]
        parameters = matrices if name == "Muon" else network.parameters()
        plain(getattr(torch.optim, name)(parameters, **options), network)

    run.__name__ = name.lower() + "".join(f"_{option}" for option in options)
    return case(run)


NAMES = "SGD Adam AdamW Adagrad RMSprop Adadelta NAdam RAdam Rprop ASGD Adamax Muon"
for _name in NAMES.split(" "):
    if hasattr(torch.optim, _name):
        of_torch(_name)
of_torch("Adafactor")
of_torch("Adam", fused=True)
of_torch("Adam", foreach=True)


@case
def sparse_adam():
    embedding = nn.Embedding(10, 4, sparse=True)
    optimizer = torch.optim.SparseAdam(list(embedding.parameters()))
    for _ in range(N):
        optimizer.zero_grad()
        embedding(torch.tensor([1, 2])).sum().backward()
        optimizer.step()


@case
def gradient_accumulation():
    network = model()
    optimizer = torch.optim.Adam(network.parameters())
    for i in range(4 * N):
        network(batch()).sum().backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


@case
def gan_three_to_one():
    critic, generator = model(), nn.Linear(8, 8)
    of_generator = torch.optim.Adam(generator.parameters())
    of_critic = torch.optim.Adam(critic.parameters())
    for _ in range(N):
        for _ in range(3):
            of_critic.zero_grad()
            (critic(batch()).mean() - critic(generator(batch()).detach()).mean()).backward()
            of_critic.step()
        of_generator.zero_grad()
        critic(generator(batch())).mean().backward()
        of_generator.step()


@case
def gan_one_to_one():
    critic, generator = model(), nn.Linear(8, 8)
    of_generator = torch.optim.Adam(generator.parameters())
    of_critic = torch.optim.Adam(critic.parameters())
    for _ in range(N):
        of_critic.zero_grad()
        critic(batch()).mean().backward()
        of_critic.step()
        of_generator.zero_grad()
        critic(generator(batch())).mean().backward()
        of_generator.step()


@case
def lbfgs():
    network = model()
    optimizer = torch.optim.LBFGS(network.parameters(), max_iter=6)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(network(torch.ones(4, 8)), torch.zeros(4, 1))
        loss.backward()
        return loss

    for _ in range(N):
        optimizer.step(closure)


def scaled(factor):
    network = model()
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu")
    for i in range(N):
        optimizer.zero_grad()
        scaler.scale(network(batch()).sum() * factor(i)).backward()
        scaler.step(optimizer)
        scaler.update()


@case
def grad_scaler():
    scaled(lambda _: 1.0)


@case
def grad_scaler_with_every_step_left_out():
    scaled(lambda _: float("inf"))


@case
def grad_scaler_with_some_steps_left_out():
    scaled(lambda i: float("inf") if i < 2 else 1.0)


@case
def manual_update():
    network = model()
    for _ in range(N):
        network(batch()).sum().backward()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.sub_(0.01 * parameter.grad)
                parameter.grad = None


@case
def custom_optimizer():
    class Mine(torch.optim.Optimizer):
        def __init__(self, parameters):
            super().__init__(parameters, {})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.add_(parameter.grad, alpha=-0.01)

    network = model()
    plain(Mine(network.parameters()), network)


@case
def duck_typed_optimizer():
    network = model()

    class Duck:
        def zero_grad(self):
            network.zero_grad()

        def step(self):
            with torch.no_grad():
                for parameter in network.parameters():
                    parameter.sub_(0.01 * parameter.grad)

    plain(Duck(), network)


@case
def wrapper_optimizer():
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            super().__init__(inner.param_groups, {})

        def step(self, closure=None):
            return self.inner.step(closure)

    network = model()
    plain(Wrapper(torch.optim.SGD(network.parameters(), 0.1)), network)


@case
def backward_imported_by_name():
    from torch.autograd import backward

    network = model()
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    for _ in range(N):
        optimizer.zero_grad()
        backward(network(batch()).sum())
        optimizer.step()


@case
def optimizer_in_backward():
    network = model()
    optimizers = {p: torch.optim.SGD([p], 0.1) for p in network.parameters()}

    def hook(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in network.parameters():
        parameter.register_post_accumulate_grad_hook(hook)
    for _ in range(N):
        network(batch()).sum().backward()


@case
def optimizer_that_is_never_used():
    network, other = model(), model()
    unused = torch.optim.Adam(other.parameters())
    plain(torch.optim.Adam(network.parameters()), network, n=20)
    return 20 if unused else 0


@case
def new_optimizer_each_epoch():
    network = model()
    for _ in range(3):
        plain(torch.optim.Adam(network.parameters()), network)
    return 3 * N


@case
def two_stages_one_after_the_other():
    first, second = model(), model()
    of_first = torch.optim.Adam(first.parameters())
    of_second = torch.optim.Adam(second.parameters())
    plain(of_first, first, n=30)
    plain(of_second, second, n=30)
    return 60


@case
def checkpointed_activations():
    from torch.utils.checkpoint import checkpoint

    network = model()
    for _ in range(N):
        x = batch().requires_grad_()
        checkpoint(network, x, use_reentrant=True).sum().backward()


@case
def functional_gradients():
    network = model()
    for _ in range(N):
        gradients = torch.autograd.grad(network(batch()).sum(), list(network.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(network.parameters(), gradients, strict=True):
                parameter.sub_(0.01 * gradient)
    return 0  # nothing but time is left to go by


@case
def inference():
    network = model().eval()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(250, 8)))
    with torch.no_grad():
        for (x,) in loader:
            network(x)
    return 250


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    probe = sys.modules.get("_memdiag_probe")
    for name in sys.argv[1:] or CASES:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            torch.manual_seed(0)
            true = CASES[name]()
            if probe:
                probe.listener.counter(name, N if true is None else true)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0, name


if __name__ == "__main__":
    main()
