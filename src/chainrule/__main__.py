"""``python -m chainrule``: demo that trains a digit classifier in less than half a minute.

``python -m chainrule doctor`` prints a report on the environment instead.

The data are the 1,797 digits of 8 × 8 pixels in scikit-learn [1]_. Four fifths of them train a
network of one hidden layer, whose ReLU is a custom function; the others are held out for testing.
The training step is compiled, and some of its calls are verified.

.. [1] E. Alpaydin, C. Kaynak, Optical recognition of handwritten digits, UCI Machine Learning
   Repository, 1998, https://doi.org/10.24432/C50P49.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, final

import chainrule as cr
from chainrule import Tensor, doctor, plotting
from chainrule.nn import Linear
from chainrule.nn.functional import cross_entropy
from chainrule.optim import Adam

HIDDEN = 128
BATCH = 32
EPOCHS = 40
LEARNING_RATE = 1e-3


@cr.autograd_function
def relu(ctx: Any, x: Tensor) -> Tensor:
    """Return max(x, 0), and save the mask of positive elements."""
    positive = x > 0
    ctx.save_for_backward(positive=positive)
    return cr.where(positive, x, 0.0)


@relu.backward
def _(ctx: Any, grad_output: Tensor) -> dict[str, Tensor]:
    return {"x": cr.where(ctx.saved_variables.positive, grad_output, 0.0)}


CUSTOM = (relu,)
"""The custom functions of the demo, which are checked before the training."""


class Digits(NamedTuple):
    """Images, shape (n, 64), with values from 0 to 1, and their labels, shape (n,)."""

    images: Tensor
    labels: Tensor


@final
class Network:
    """Two linear layers with a ReLU in between."""

    def __init__(self) -> None:
        self.hidden = Linear(64, HIDDEN)
        self.output = Linear(HIDDEN, 10)

    def parameters(self) -> list[Tensor]:
        return [*self.hidden.parameters(), *self.output.parameters()]

    def __call__(self, images: Tensor) -> Tensor:
        logits: Tensor = self.output(relu(self.hidden(images)))
        return logits


class Progress(NamedTuple):
    """Losses and accuracy after each epoch."""

    training: list[float]
    held_out: list[float]
    accuracy: list[float]


def find_extras() -> None:
    """Raise if an extra is missing, and select a matplotlib backend without a display."""
    try:
        matplotlib, _ = map(import_module, ("matplotlib", "sklearn"))
    except ImportError as error:
        raise cr.MissingExtraError(
            f"the demo needs {error.name}, which is not installed: pip install 'chainrule[demo]'"
        ) from error
    matplotlib.use("agg")


def load() -> tuple[Digits, Digits]:
    """Return four fifths of the digits for training, and one fifth held out."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = cr.tensor(bunch.data / 16, dtype=cr.float32)
    labels = cr.tensor(bunch.target)
    order = cr.randperm(len(labels))
    cut = len(labels) // 5
    held_out, training = order[:cut], order[cut:]
    return Digits(images[training], labels[training]), Digits(images[held_out], labels[held_out])


def check() -> None:
    """Check the custom functions, such as their derivatives against finite differences."""
    for function in CUSTOM:
        print(function.check(cr.randn(4, 5)))


def train(network: Network, training: Digits, held_out: Digits) -> Progress:
    """Train the network and print its progress."""
    step = training_step(network)
    progress = Progress([], [], [])
    print("epoch   training loss   held-out loss   held-out accuracy")
    for epoch in range(1, EPOCHS + 1):
        progress.training.append(one_epoch(step, training))
        with cr.no_grad():
            scores = network(held_out.images)
            progress.held_out.append(cross_entropy(scores, held_out.labels).item())
            progress.accuracy.append(accuracy(scores, held_out.labels))
        loss, other, right = (column[-1] for column in progress)
        print(f"{epoch:5}   {loss:13.4f}   {other:13.4f}   {100 * right:15.1f} %", flush=True)
    return progress


def training_step(network: Network) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the function that trains on one batch and returns its loss.

    It is compiled; the first calls and every hundredth are compared with plain Python.
    """
    optimizer = Adam(network.parameters(), lr=LEARNING_RATE)

    @cr.compile(backend="numpy", verify=True)
    def step(images: Tensor, labels: Tensor) -> Tensor:
        loss = cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def one_epoch(step: Callable[[Tensor, Tensor], Tensor], digits: Digits) -> float:
    """Train on every digit once, in random order; return the mean loss."""
    total, n = 0.0, len(digits.labels)
    for batch in cr.randperm(n).split(BATCH):
        total += step(digits.images[batch], digits.labels[batch]).item() * len(batch)
    return total / n


def accuracy(scores: Tensor, labels: Tensor) -> float:
    """Return the fraction of rows whose highest score is that of the label."""
    fraction: float = (scores.argmax(1) == labels).float().mean().item()
    return fraction


def draw(progress: Progress, network: Network, held_out: Digits) -> dict[str, Any]:
    """Return the axes of the figures by file name."""
    return {
        "learning_curve": draw_progress(progress),
        "digits": draw_digits(network, held_out),
        "linear_approximation": draw_approximation(),
    }


def draw_progress(progress: Progress) -> Any:
    """Plot the training and the held-out loss."""
    curves = {"training": progress.training, "held out": progress.held_out}
    axes = plotting.learning_curve(curves, label="cross-entropy (nats)", log=True)
    axes.set_title(f"Held-out accuracy {100 * progress.accuracy[-1]:.1f} %", loc="left")
    return axes


def draw_digits(network: Network, digits: Digits, count: int = 32) -> Any:
    """Plot held-out digits, misclassified ones first."""
    with cr.no_grad():
        predictions = network(digits.images).argmax(1)
    wrong = predictions != digits.labels
    shown = wrong.long().argsort(descending=True, stable=True)[:count]
    axes = plotting.digit_grid(
        digits.images[shown].reshape(-1, 8, 8), digits.labels[shown], predictions[shown]
    )
    count = int(wrong.sum())
    axes.set_title(
        f"{count} of {len(wrong)} held-out digits are misread; these come first", loc="left"
    )
    return axes


def draw_approximation(at: float = 2.0) -> Any:
    """Plot f(x) = x² + 3x + 2 and its tangent line at one point."""

    def f(x: Tensor) -> Tensor:
        return x**2 + 3 * x + 2

    point = cr.tensor(at, requires_grad=True)
    value = f(point)
    value.backward()
    assert point.grad is not None
    x = cr.linspace(-4, 4, 100)
    line = value.detach() + point.grad * (x - at)
    return plotting.linear_approximation(x, f(x), line, at=at, label="x² + 3x + 2")


def save(pictures: dict[str, Any], folder: Path) -> list[Path]:
    """Save every figure as PNG and as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, axes in pictures.items():
        for suffix in ("png", "svg"):
            path = folder / f"{name}.{suffix}"
            axes.figure.savefig(path, dpi=150)
            paths.append(path)
    return paths


def main(arguments: Sequence[str] | None = None) -> Progress:
    """Run the demo; return its losses and accuracies."""
    parser = argparse.ArgumentParser(
        prog="python -m chainrule",
        description="Train a classifier of handwritten digits.",
        epilog="python -m chainrule doctor prints a report on the environment.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("chainrule-demo"),
        metavar="FOLDER",
        help="folder for the figures (default: %(default)s)",
    )
    folder = parser.parse_args(arguments).out

    start = time.perf_counter()
    find_extras()
    cr.manual_seed(0)
    training, held_out = load()
    print(f"{len(training.labels)} digits to learn from, {len(held_out.labels)} held out\n")

    print("The custom functions, checked:")
    check()
    print()

    network = Network()
    progress = train(network, training, held_out)
    paths = save(draw(progress, network, held_out), folder)

    print(f"\n{100 * progress.accuracy[-1]:.1f} % of the held-out digits are read correctly.")
    print(f"The pictures are in {folder}{os.sep}: {', '.join(path.name for path in paths)}")
    print(f"All in {time.perf_counter() - start:.1f} s.")
    return progress


if __name__ == "__main__":
    try:
        doctor.main() if sys.argv[1:] == ["doctor"] else main()
    except cr.MissingExtraError as error:
        sys.exit(f"chainrule: {error}")
