"""Pruning, stochastic weight averaging, EMA and fused layers, as in PyTorch's tutorials."""
import numpy as np
import chainrule as torch
import chainrule.nn as nn
import chainrule.nn.functional as F
import chainrule.nn.utils.prune as prune
from chainrule.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from chainrule.utils.data import DataLoader, TensorDataset, random_split

rng = np.random.default_rng(0)
X = torch.tensor(rng.normal(size=(48, 1, 8, 8)), dtype=torch.float32)
Y = (X.mean((1, 2, 3)) > 0).long()


class LeNet(nn.Module):
    def __init__(self):
        super(LeNet, self).__init__()
        self.conv1 = nn.Conv2d(1, 6, 3)
        self.bn1 = nn.BatchNorm2d(6)
        self.fc1 = nn.Linear(6 * 3 * 3, 16)
        self.bn2 = nn.BatchNorm1d(16)
        self.fc2 = nn.Linear(16, 2)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), (2, 2))
        x = x.view(-1, int(x.nelement() / x.shape[0]))
        return self.fc2(F.relu(self.bn2(self.fc1(x))))


model = LeNet()
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape))))
assert [len(part) for part in random_split(TensorDataset(X, Y), [40, 8])] == [40, 8]
loader = DataLoader(TensorDataset(X, Y), batch_size=12)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
swa_model, ema_model = AveragedModel(model), AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
swa_scheduler = SWALR(optimizer, swa_lr=0.02, anneal_epochs=2)
history = []
for epoch in range(6):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y, label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        ema_model.update_parameters(model)
    if epoch > 2:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    history += [loss.item(), optimizer.param_groups[0]['lr']]
update_bn(loader, swa_model)
swa_model.eval(), ema_model.eval()
history += [F.cross_entropy(swa_model(X), Y).item(), F.cross_entropy(ema_model(X), Y).item()]

prune.l1_unstructured(model.conv1, name='weight', amount=0.3)
prune.ln_structured(model.conv1, name='weight', amount=0.5, n=2, dim=0)
prune.custom_from_mask(model.fc2, name='bias', mask=torch.tensor([0, 1]))
prune.global_unstructured([(model.fc1, 'weight'), (model.fc2, 'weight')], pruning_method=prune.L1Unstructured, amount=0.2)
print(list(model.conv1.named_buffers()), model.conv1._forward_pre_hooks if hasattr(model.conv1, '_forward_pre_hooks') else '')
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
for module, name in [(model.conv1, 'weight'), (model.fc1, 'weight'), (model.fc2, 'weight'), (model.fc2, 'bias')]:
    prune.remove(module, name)
    history.append(float(torch.sum(getattr(module, name) == 0)))
assert not prune.is_pruned(model)
model.eval()
fused = nn.utils.fuse_conv_bn_eval(model.conv1, model.bn1)
history += [fused(X).abs().mean().item(), (fused(X) - model.bn1(model.conv1(X))).abs().max().item() < 1e-4]
fused = nn.utils.fuse_linear_bn_eval(model.fc1, model.bn2)
history.append(fused.weight.abs().sum().item())
