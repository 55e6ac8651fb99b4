"""A CNN with lazy layers, hooks, several heads and checkpoints, as notebooks of today write it."""
import numpy as np
import chainrule as torch
from chainrule import nn, optim
from chainrule.nn import functional as F

rng = np.random.default_rng(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.LazyConv2d(6, 3, padding=1), nn.LazyBatchNorm2d(), nn.SiLU(), nn.AvgPool2d(2),
            nn.LazyConv2d(8, 3, bias=False), nn.GroupNorm(2, 8), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.heads = nn.ModuleDict({'kind': nn.LazyLinear(3), 'value': nn.LazyLinear(1)})

    def forward(self, x):
        features = self.backbone(x)
        return {name: head(features) for name, head in self.heads.items()}


X = torch.tensor(rng.normal(size=(16, 2, 8, 8)), dtype=torch.float32)
kind, value = torch.arange(16) % 3, X.mean((1, 2, 3))
net = Net()
net(X[:2])  # a dry run
print(net, sum(p.numel() for p in net.parameters() if p.requires_grad))
with torch.no_grad():
    for p in net.parameters():
        p.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape))))
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.reset_running_stats()
activations = {}
handle = net.backbone[2].register_forward_hook(lambda module, inputs, output: activations.update(silu=output.detach()))
optimizer = optim.RAdam([{'params': net.backbone.parameters()}, {'params': net.heads.parameters(), 'lr': 2e-2}], lr=1e-2)
scheduler = optim.lr_scheduler.SequentialLR(optimizer, [
    optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3), optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)], milestones=[3])
history = []
for epoch in range(10):
    out = net(X)
    losses = {'kind': F.cross_entropy(out['kind'], kind, weight=torch.tensor([1.0, 2.0, 0.5])), 'value': F.huber_loss(out['value'].squeeze(1), value)}
    loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
    total = nn.utils.clip_grad_norm_(net.parameters(), max_norm=2.0)
    optimizer.step()
    scheduler.step()
    history += [loss.item(), total.item(), scheduler.get_last_lr()[1]]
handle.remove()
history.append(activations['silu'].mean().item())
net.eval()
with torch.inference_mode():
    probs = F.softmax(net(X)['kind'], dim=-1)
    conf, pred = probs.max(dim=-1)
history += conf.tolist()
vector = nn.utils.parameters_to_vector(net.parameters())
nn.utils.vector_to_parameters(vector * 0.5, net.parameters())
history += [vector.norm().item(), nn.utils.get_total_norm(list(net.parameters())).item()]
assert history[27] < history[0]
