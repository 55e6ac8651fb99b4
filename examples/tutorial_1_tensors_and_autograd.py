"""Tutorial 1: tensors and autograd.

A network of two layers is fitted to random numbers, with nothing but tensors: `autograd` computes
the gradients, and we take the steps downhill ourselves. Then an optimiser takes them for us.

Run it: python3 examples/tutorial_1_tensors_and_autograd.py
"""

import chainrule as cr

# Everything below works on either device. On the CPU the arrays are NumPy's, on a GPU CuPy's.
device = cr.device("cuda") if cr.cuda.is_available() else cr.device("cpu")

# 64 samples with 1,000 inputs and 10 outputs each, and 100 hidden units in between.
N, D_IN, HIDDEN, D_OUT = 64, 1000, 100, 10

LEARNING_RATE = 1e-6
STEPS = 500


def random_data():
    """Return inputs x and outputs y, which have nothing to do with each other.

    Tensors don't require grad unless we ask for it. We won't differentiate with respect to the
    data, so we don't ask.
    """
    x = cr.randn(N, D_IN, device=device)
    y = cr.randn(N, D_OUT, device=device)
    return x, y


def random_weights():
    """Return the two weight matrices.

    `requires_grad=True` says that we shall want the gradient of something with respect to them.
    From here on, every operation that involves them is recorded.
    """
    w1 = cr.randn(D_IN, HIDDEN, device=device, requires_grad=True)
    w2 = cr.randn(HIDDEN, D_OUT, device=device, requires_grad=True)
    return w1, w2


def squared_error(x, y, w1, w2):
    """Return the loss: how far the network's outputs are from y.

    The forward pass is three operations on tensors: a matrix product, a ReLU (written as a clamp at
    zero), and another product. No hidden values need to be kept by hand: what the backward pass
    needs, the graph remembers.
    """
    y_pred = x.mm(w1).clamp(min=0).mm(w2)
    return (y_pred - y).pow(2).sum()


def train_by_hand(x, y, w1, w2, steps=STEPS):
    """Fit the weights by gradient descent, written out; return the loss before each step."""
    losses = []
    for step in range(1, steps + 1):
        loss = squared_error(x, y, w1, w2)
        losses.append(loss.item())  # item() gives the number in a tensor of one element
        report(step, losses[-1])

        # The backward pass. It walks the graph from the loss back to the leaves that require grad,
        # and leaves ∂loss/∂w1 in w1.grad and ∂loss/∂w2 in w2.grad.
        loss.backward()

        # The step. It's not part of what we differentiate, so it must not be recorded: no_grad()
        # switches recording off. sub_ ends in an underscore because it changes w in place; w stays
        # the same leaf. (w = w - … would make a new tensor, without a gradient.)
        with cr.no_grad():
            for w in (w1, w2):
                w.sub_(LEARNING_RATE * w.grad)

                # backward() adds to .grad, so we start the next pass from zero.
                w.grad.zero_()
    return losses


def train_with_optimizer(x, y, w1, w2, steps=STEPS):
    """Do the same with `optim.SGD`, which knows the parameters and how to update them."""
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
    cr.manual_seed(1)  # the same random numbers every time

    x, y = random_data()
    w1, w2 = random_weights()

    # Both start from the same weights: clone() copies the values, detach() leaves the history
    # behind, and so we get leaves of our own.
    copies = [w.detach().clone().requires_grad_() for w in (w1, w2)]

    print(f"By hand, on {device}:")
    by_hand = train_by_hand(x, y, w1, w2)

    print("\nWith an optimiser:")
    with_optimizer = train_with_optimizer(x, y, *copies)

    # Noise can't be predicted, but it can be remembered: 101,000 weights hold 640 numbers easily.
    print(f"\nThe loss fell from {by_hand[0]:.3g} to {by_hand[-1]:.3g}.")
    apart = max(abs(a - b) / a for a, b in zip(by_hand, with_optimizer, strict=True))
    print(f"The losses of the two runs agree to a relative error of {apart:.1g}.")
    return by_hand, with_optimizer


if __name__ == "__main__":
    main()
