"""Tutorial 1: tensors and autograd.

We fit a network of two layers to random numbers. `autograd` computes the gradients. First we update
the weights ourselves, then an optimiser does it for us.

Run it: python3 examples/tutorial_1_tensors_and_autograd.py
"""

import chainrule as cr

# Everything below works on both devices: with NumPy arrays on the CPU, with CuPy arrays on a GPU.
device = cr.device("cuda") if cr.cuda.is_available() else cr.device("cpu")

# 64 samples with 1,000 inputs and 10 outputs each, and 100 hidden units.
N, D_IN, HIDDEN, D_OUT = 64, 1000, 100, 10

LEARNING_RATE = 1e-6
STEPS = 500


def random_data():
    """Return inputs x and outputs y, which are unrelated.

    Tensors don't require grad unless we ask for it. We don't differentiate with respect to the
    data, so we don't ask.
    """
    x = cr.randn(N, D_IN, device=device)
    y = cr.randn(N, D_OUT, device=device)
    return x, y


def random_weights():
    """Return the two weight matrices.

    `requires_grad=True` says that we want gradients with respect to them. From here on, every
    operation that involves them is recorded.
    """
    w1 = cr.randn(D_IN, HIDDEN, device=device, requires_grad=True)
    w2 = cr.randn(HIDDEN, D_OUT, device=device, requires_grad=True)
    return w1, w2


def squared_error(x, y, w1, w2):
    """Return the loss: the squared distance between the network's outputs and y.

    The forward pass is three operations on tensors: a matrix product, a ReLU (written as a clamp at
    zero), and another product. We need not keep the hidden values: the graph saves everything that
    the backward pass needs.
    """
    y_pred = x.mm(w1).clamp(min=0).mm(w2)
    return (y_pred - y).pow(2).sum()


def train_by_hand(x, y, w1, w2, steps=STEPS):
    """Fit the weights by gradient descent, step by step; return the loss before each step."""
    losses = []
    for step in range(1, steps + 1):
        loss = squared_error(x, y, w1, w2)
        losses.append(loss.item())  # item() returns the number in a tensor of one element
        report(step, losses[-1])

        # The backward pass. It walks the graph from the loss back to the leaves that require grad,
        # and stores ∂loss/∂w1 in w1.grad and ∂loss/∂w2 in w2.grad.
        loss.backward()

        # The update. We don't differentiate it, so it must not be recorded: no_grad() switches
        # recording off. sub_ ends in an underscore because it changes w in place; w stays the same
        # leaf. (w = w - … would make a new tensor, which has no gradient.)
        with cr.no_grad():
            for w in (w1, w2):
                w.sub_(LEARNING_RATE * w.grad)

                # backward() adds to .grad, so we reset it to zero before the next pass.
                w.grad.zero_()
    return losses


def train_with_optimizer(x, y, w1, w2, steps=STEPS):
    """Do the same with `optim.SGD`, which keeps the parameters and updates them."""
    optimizer = cr.optim.SGD([w1, w2], lr=LEARNING_RATE)
    losses = []
    for step in range(1, steps + 1):
        loss = squared_error(x, y, w1, w2)
        losses.append(loss.item())
        report(step, losses[-1])

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def report(step, loss):
    if step == 1 or step % 100 == 0:
        print(f"Step {step:3}: {loss:.4g}")


def main():
    cr.manual_seed(1)  # the same random numbers in every run

    x, y = random_data()
    w1, w2 = random_weights()

    # Both runs start from the same weights. detach() drops the history and clone() copies the
    # values, so these are new leaves.
    copies = [w.detach().clone().requires_grad_() for w in (w1, w2)]

    print(f"By hand, on {device}:")
    by_hand = train_by_hand(x, y, w1, w2)

    print("\nWith an optimiser:")
    with_optimizer = train_with_optimizer(x, y, *copies)

    # Random outputs can't be predicted, but 101,000 weights can memorise 640 of them.
    print(f"\nThe loss fell from {by_hand[0]:.3g} to {by_hand[-1]:.3g}.")
    apart = max(abs(a - b) / a for a, b in zip(by_hand, with_optimizer, strict=True))
    print(f"The losses of the two runs agree to a relative error of {apart:.1g}.")
    return by_hand, with_optimizer


if __name__ == "__main__":
    main()
