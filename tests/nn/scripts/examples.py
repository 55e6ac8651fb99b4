# "Learning PyTorch with examples"
import chainrule as torch
import math
x = torch.linspace(-math.pi, math.pi, 2000); y = torch.sin(x)
p = torch.tensor([1, 2, 3]); xx = x.unsqueeze(-1).pow(p)
model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
loss_fn = torch.nn.MSELoss(reduction='sum')
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for t in range(1500):
    y_pred = model(xx); loss = loss_fn(y_pred, y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
print(loss.item()); assert loss.item() < 30
linear_layer = model[0]
print(f'Result: y = {linear_layer.bias.item()} + {linear_layer.weight[:, 0].item()} x + {linear_layer.weight[:, 1].item()} x^2')
class Polynomial3(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.randn(())); self.b = torch.nn.Parameter(torch.randn(()))
        self.c = torch.nn.Parameter(torch.randn(())); self.d = torch.nn.Parameter(torch.randn(()))
    def forward(self, x): return self.a + self.b * x + self.c * x ** 2 + self.d * x ** 3
    def string(self): return f'y = {self.a.item()} + {self.b.item()} x'
m = Polynomial3(); c = torch.nn.MSELoss(reduction='sum'); o = torch.optim.SGD(m.parameters(), lr=1e-6)
for t in range(2000):
    yp = m(x); loss = c(yp, y); o.zero_grad(); loss.backward(); o.step()
print(loss.item(), m.string())
assert loss.item() < 200
learning_rate = 1e-3
for _ in range(3):
    model.zero_grad(); loss_fn(model(xx), y).backward()
    with torch.no_grad():
        for param in model.parameters(): param -= 1e-6 * param.grad
