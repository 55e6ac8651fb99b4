"""A graph convolution network, a tiny DCGAN with mixed precision behind a flag, and torch.func."""
import argparse
import chainrule as torch
import chainrule.nn as nn
import chainrule.nn.functional as F
import chainrule.nn.parallel
import chainrule.multiprocessing as mp
from chainrule.nn.parameter import Parameter
from chainrule.nn.modules.module import Module
from chainrule.nn.modules.batchnorm import _BatchNorm
from chainrule.nn.modules.conv import _ConvNd
from chainrule.cuda.amp import GradScaler, autocast
from chainrule.func import functional_call, grad, vjp, vmap

parser = argparse.ArgumentParser()
parser.add_argument('--no-accel', action='store_true')
args = parser.parse_args([])
use_accel = not args.no_accel and torch.accelerator.is_available()
device = torch.accelerator.current_accelerator() if use_accel else torch.device('cpu')
torch.manual_seed(0)


class GraphConvolution(Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = Parameter(torch.FloatTensor(i, o))
        self.bias = Parameter(torch.FloatTensor(o))
        stdv = 1. / self.weight.size(1) ** 0.5
        self.weight.data.uniform_(-stdv, stdv)
        self.bias.data.uniform_(-stdv, stdv)

    def forward(self, x, adj):
        return torch.spmm(adj, torch.mm(x, self.weight)) + self.bias if hasattr(torch, 'spmm') else adj @ torch.mm(x, self.weight) + self.bias


labels = torch.LongTensor([0] * 10 + [1] * 10).to(device)
adj = (torch.rand(20, 20) < torch.where(labels[:, None] == labels, 0.5, 0.05)).float() + torch.eye(20)
adj = adj / adj.sum(1, keepdim=True)
g1, g2 = GraphConvolution(20, 16), GraphConvolution(16, 2)
optimizer = torch.optim.Adam([*g1.parameters(), *g2.parameters()], lr=0.02, weight_decay=5e-4)
idx_train = torch.LongTensor([0, 1, 2, 10, 11, 12])
for epoch in range(60):
    optimizer.zero_grad()
    output = F.log_softmax(g2(F.dropout(F.relu(g1(torch.eye(20), adj)), 0.3), adj), dim=1)
    F.nll_loss(output[idx_train], labels[idx_train]).backward()
    optimizer.step()
accuracy = output.max(1)[1].type_as(labels).eq(labels).double().mean().item()
print('gcn', accuracy)
assert accuracy > 0.8

G = nn.Sequential(nn.ConvTranspose2d(4, 8, 4, 1, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(True), nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh())
D = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(8, 1, 4, 1, 0, bias=False), nn.Flatten(0), nn.Sigmoid())
for m in [*G.modules(), *D.modules()]:
    if isinstance(m, _ConvNd):
        torch.nn.init.normal_(m.weight, 0.0, 0.02)
    elif isinstance(m, _BatchNorm):
        torch.nn.init.normal_(m.weight, 1.0, 0.02)
        torch.nn.init.zeros_(m.bias)
optD, optG = (torch.optim.Adam(n.parameters(), lr=2e-3, betas=(0.5, 0.999)) for n in (D, G))
scaler, criterion = GradScaler(enabled=use_accel), nn.BCELoss()
real = F.interpolate(torch.rand(16, 1, 2, 2) * 2 - 1, scale_factor=4)
for i in range(10):
    noise = torch.randn(16, 4, 1, 1, device=device)
    with autocast(enabled=use_accel):
        fake = G(noise)
        errD = criterion(D(real), torch.full((16,), 1.)) + criterion(D(fake.detach()), torch.zeros(16))
    optD.zero_grad()
    scaler.scale(errD).backward()
    scaler.step(optD)
    optG.zero_grad()
    errG = criterion(D(fake), torch.ones(16))
    scaler.scale(errG).backward()
    scaler.step(optG)
    scaler.update()
print('gan %.3f %.3f' % (errD.item(), errG.item()))

net = nn.Linear(3, 1)
params = {k: v.detach() for k, v in net.named_parameters()}
per_sample = vmap(grad(lambda p, x: functional_call(net, p, (x,)).square().sum()), (None, 0))(params, torch.randn(5, 3))
assert per_sample['weight'].shape == (5, 1, 3)
_, vjp_fn = vjp(torch.sin, torch.ones(2))
(pulled,) = vjp_fn(torch.ones(2))


@torch.jit.script
def fused_gelu(x):
    return x * 0.5 * (1.0 + torch.erf(x / 1.41421))


@torch.no_grad()
def evaluate(model, x):
    return model(fused_gelu(x))


print(evaluate(torch.compile(net, mode='reduce-overhead'), torch.randn(2, 3)).requires_grad)
if torch.cuda.is_available():
    torch.cuda.synchronize()
if __name__ == '__main__':
    print(mp.cpu_count() > 0, torch.cuda.device_count(), torch.cuda.memory_allocated())
