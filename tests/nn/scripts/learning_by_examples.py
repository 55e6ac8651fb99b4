"""The series "learning PyTorch with examples": a polynomial fitted in eight ways."""
import math
import random
import numpy as np
import chainrule as torch

torch.set_default_dtype(torch.float64)
x = torch.linspace(-math.pi, math.pi, 200)
y = torch.sin(x)
history = []

a, b, c, d = (torch.tensor(v) for v in (0.1, 0.2, -0.1, 0.05))
for t in range(20):  # by hand
    y_pred = a + b * x + c * x ** 2 + d * x ** 3
    grad_y_pred = 2.0 * (y_pred - y)
    a -= 1e-5 * grad_y_pred.sum()
    b -= 1e-5 * (grad_y_pred * x).sum()
    c -= 1e-5 * (grad_y_pred * x ** 2).sum()
    d -= 1e-5 * (grad_y_pred * x ** 3).sum()
history += [v.item() for v in (a, b, c, d)]

weights = [torch.tensor(v, requires_grad=True) for v in (0.1, 0.2, -0.1, 0.05)]
for t in range(20):  # autograd
    a, b, c, d = weights
    loss = (a + b * x + c * x ** 2 + d * x ** 3 - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for w in weights:
            w -= 1e-5 * w.grad
            w.grad = None
history += [w.item() for w in weights]


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input ** 3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input ** 2 - 1)


P3 = LegendrePolynomial3.apply
weights = [torch.full((), v, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3)]
for t in range(30):
    a, b, c, d = weights
    loss = (a + b * P3(c + d * x) - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for w in weights:
            w -= 5e-6 * w.grad
            w.grad = None
    history.append(loss.item())

p = torch.tensor([1, 2, 3])
xx = x.unsqueeze(-1).pow(p)
for name in ['SGD', 'RMSprop', 'Adam', 'Adagrad', 'Rprop', 'NAdam']:
    model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
    torch.nn.init.constant_(model[0].weight, 0.05)
    torch.nn.init.zeros_(model[0].bias)
    loss_fn = torch.nn.MSELoss(reduction='sum')
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=1e-6 if name == 'SGD' else 1e-3)
    for t in range(20):
        loss = loss_fn(model(xx), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    history.append(loss.item())


class DynamicNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d, self.e = (torch.nn.Parameter(torch.tensor(v)) for v in (0.1, 0.2, 0.3, -0.1, 0.001))

    def forward(self, x):
        y = self.a + self.b * x + self.c * x ** 2 + self.d * x ** 3
        for exp in range(4, random.randint(4, 6)):
            y = y + self.e * x ** exp
        return y

    def string(self):
        return f'y = {self.a.item()} + {self.b.item()} x + {self.e.item()} x^4 ? + {self.e.item()} x^5 ?'


random.seed(0)
model = DynamicNet()
criterion = torch.nn.MSELoss(reduction='sum')
optimizer = torch.optim.SGD(model.parameters(), lr=1e-8, momentum=0.9)
for t in range(30):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print(model.string(), np.asarray(history).shape)
torch.set_default_dtype(torch.float32)
