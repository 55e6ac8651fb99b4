"""``python -m chainrule``: the demo, which trains a network to read digits, and the doctor.

The demo trains a convolutional network in seconds. The data are the 1,797 digits of 8 × 8 pixels in
scikit-learn [1]_: four fifths to learn from, the others held out. The activation of the network is
a custom function, which is checked first.

.. [1] E. Alpaydin, C. Kaynak, Optical recognition of handwritten digits, UCI Machine Learning
   Repository, 1998, https://doi.org/10.24432/C50P49.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import chainrule as cr
from chainrule import Tensor, doctor, nn, plotting
from chainrule.nn import functional as F
from chainrule.optim import Adam
from chainrule.optim.lr_scheduler import OneCycleLR
from chainrule.utils import progress
from chainrule.utils.data import DataLoader, TensorDataset, random_split

EPOCHS = 15
BATCH = 32
LEARNING_RATE = 5e-3


@cr.autograd_function
def swish(ctx: Any, x: Tensor) -> Tensor:
    """Return x · sigmoid(x): a custom function, with a backward of its own."""
    ctx.save_for_backward(x=x)
    return x * cr.sigmoid(x)


@swish.backward
def _(ctx: Any, grad_output: Tensor) -> Tensor:
    x: Tensor = ctx.saved_variables.x
    gate = cr.sigmoid(x)
    return grad_output * gate * (1 + x * (1 - gate))


class Network(nn.Module):
    """Two convolutions with an activation each, and a linear layer that scores ten digits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.dropout = nn.Dropout(0.5)
        self.output = nn.Linear(32 * 4 * 4, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores, shape (n, 10), of images, shape (n, 1, 8, 8)."""
        x = swish(self.conv1(images))
        x = swish(F.max_pool2d(self.conv2(x), 2))
        scores: Tensor = self.output(self.dropout(x.flatten(1)))
        return scores


class History(NamedTuple):
    """Losses and accuracy after each epoch."""

    training: list[float]
    held_out: list[float]
    accuracy: list[float]


def load_digits() -> tuple[TensorDataset, TensorDataset]:
    """Return the digits to learn from, and those held out: images and labels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = cr.tensor(digits.images / 16, dtype=cr.float32).unsqueeze(1)
    parts = random_split(TensorDataset(images, cr.tensor(digits.target)), [0.8, 0.2])
    training, held_out = (TensorDataset(*part.dataset[part.indices]) for part in parts)
    return training, held_out


def check() -> None:
    """Compare the derivatives of the custom function with finite differences."""
    x = cr.randn(4, 5, dtype=cr.float64, requires_grad=True)
    assert cr.gradcheck(swish, x)
    assert cr.gradgradcheck(swish, x)
    print(swish.check(x))


def train(network: Network, training: TensorDataset, held_out: TensorDataset) -> History:
    """Train the network, and show how it gets on."""
    batches = DataLoader(training, batch_size=BATCH, shuffle=True)
    optimizer = Adam(network.parameters())
    schedule = OneCycleLR(optimizer, LEARNING_RATE, epochs=EPOCHS, steps_per_epoch=len(batches))
    history = History([], [], [])

    @cr.compile(verify=True)  # some of the calls are compared with eager ones
    def step(images: Tensor, labels: Tensor) -> Tensor:
        loss = F.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for epoch in range(1, EPOCHS + 1):
        network.train()
        total = 0.0
        for images, labels in progress(batches, f"epoch {epoch:2}"):
            total += step(images, labels).item()
            schedule.step()
        loss, right = evaluate(network, held_out)
        history.training.append(total / len(batches))
        history.held_out.append(loss.item())
        history.accuracy.append(right.mean().item())
        print(
            f"          loss {history.training[-1]:.4f}, held out {loss.item():.4f}: "
            f"{100 * history.accuracy[-1]:.1f} % are read correctly",
            flush=True,
        )
    return history


@cr.no_grad()
def evaluate(network: Network, digits: TensorDataset) -> tuple[Tensor, Tensor]:
    """Return the loss, and 1 for each digit that is read correctly, else 0."""
    images, labels = digits.tensors
    scores = network.eval()(images)
    return F.cross_entropy(scores, labels), (scores.argmax(1) == labels).float()


def save_and_reload(network: Network, path: Path) -> Network:
    """Save the parameters, and return a new network that has them."""
    cr.save(network.state_dict(), path)
    copy = Network()
    copy.load_state_dict(cr.load(path))
    return copy


@cr.no_grad()
def draw(history: History, network: Network, digits: TensorDataset, folder: Path) -> list[Path]:
    """Draw the learning curve, the digits that are hardest to read, and who is taken for whom."""
    images, labels = digits.tensors
    chances = cr.softmax(network.eval()(images), 1)
    predictions = chances.argmax(1)
    hardest = chances[cr.arange(len(labels)), labels].argsort()[:32]
    axes = {
        "learning_curve": plotting.learning_curve(
            {"training": history.training, "held out": history.held_out},
            label="cross-entropy (nats)",
            log=True,
        ),
        "digits": plotting.digit_grid(images[hardest, 0], labels[hardest], predictions[hardest]),
        "confusion": plotting.confusion_matrix(labels, predictions),
    }
    wrong = int((predictions != labels).sum())
    right = f"{100 * history.accuracy[-1]:.1f} % of the held-out digits are read correctly"
    axes["learning_curve"].set_title(right, loc="left")
    axes["digits"].set_title(f"The hardest: {wrong} of {len(labels)} are misread", loc="left")
    paths = [folder / f"{name}.{suffix}" for name in axes for suffix in ("png", "svg")]
    for path in paths:
        axes[path.stem].figure.savefig(path, dpi=150)
    return paths


def find_extras() -> Any:
    """Return a function that limits the threads of products; raise if an extra is missing."""
    try:
        matplotlib, _, threads = map(import_module, ("matplotlib", "sklearn", "threadpoolctl"))
    except ImportError as error:
        raise cr.MissingExtraError(
            f"the demo needs {error.name}, which is not installed: pip install 'chainrule[demo]'"
        ) from error
    matplotlib.use("agg")  # pictures without a display
    return threads.threadpool_limits


HELP = """\
chainrule: automatic differentiation for NumPy arrays.

    import chainrule as cr
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    x.grad                                      # tensor([2., 4.])
    cr.grad(lambda x: (x * x).sum())(x)         # the same, without .grad
    help(cr.sin)                                # each function says its derivative
"""
DEMO = "train a convolutional network to read handwritten digits, and draw what it learned"
DOCTOR = "report on the BLAS, the threads and the optional packages of this installation"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(
        prog="python -m chainrule",
        description=HELP,
        epilog="Without a command it runs the demo, which needs pip install 'chainrule[demo]'.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("--version", action="version", version=f"chainrule {cr.__version__}")
    commands = found.add_subparsers(title="commands", dest="command", metavar="command")
    of_demo = commands.add_parser("demo", help=DEMO, description=f"{DEMO.capitalize()}.")
    text = "folder for the pictures and the network (default: %(default)s)"
    default = Path("chainrule-demo")
    of_demo.add_argument("--out", type=Path, default=default, metavar="FOLDER", help=text)
    commands.add_parser("doctor", help=DOCTOR, description=f"{DOCTOR.capitalize()}.")
    return found


def run(arguments: Sequence[str]) -> None:
    """Run a command; the demo where the arguments name none."""
    first = arguments[0] if arguments else ""
    is_general = first in ("-h", "--help", "--version") or (first and first[0] != "-")
    options = parser().parse_args([*([] if is_general else ["demo"]), *arguments])
    if options.command == "doctor":
        doctor.main()
    else:
        main(options.out)


def main(folder: Path) -> History:
    """Run the demo with a folder for its pictures; return its losses and accuracies."""
    start = time.perf_counter()
    limit_threads = find_extras()
    folder.mkdir(parents=True, exist_ok=True)
    cr.manual_seed(0)
    training, held_out = load_digits()
    print(f"{len(training)} digits to learn from, {len(held_out)} held out.\n")

    print("The custom function, checked:")
    check()

    network = Network()
    with limit_threads(1):  # of small matrices, a second thread only costs time
        history = train(network, training, held_out)
    path = folder / "network.safetensors"
    copy = save_and_reload(network, path)
    images, _ = held_out.tensors
    assert copy.eval()(images).equal(network.eval()(images))
    print(f"\nThe network is in {path}: read again, it gives the same to the bit.")

    paths = draw(history, copy, held_out, folder)
    print(f"The pictures are in {folder}{os.sep}: {', '.join(path.name for path in paths)}")
    print(f"{100 * history.accuracy[-1]:.1f} % of the held-out digits are read correctly.")
    print(f"All in {time.perf_counter() - start:.1f} s.")
    return history


if __name__ == "__main__":
    try:
        run(sys.argv[1:])
    except cr.MissingExtraError as error:
        sys.exit(f"chainrule: {error}")
