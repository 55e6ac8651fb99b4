"""A siamese network: triplets of digits, in the style of PyTorch's examples, and a saved model."""
import io
import numpy as np
import chainrule as torch
import chainrule.nn as nn
import chainrule.nn.functional as F
import chainrule.optim as optim
from chainrule.optim.lr_scheduler import StepLR
from chainrule.utils.data import DataLoader, Dataset

rng = np.random.default_rng(0)
prototypes = rng.normal(size=(3, 1, 6, 6))


class Triplets(Dataset):
    def __init__(self, count):
        super().__init__()
        labels = np.arange(count) % 3
        draw = lambda which: torch.from_numpy((prototypes[which] + rng.normal(size=(count, 1, 6, 6)) * 0.3).astype(np.float32))
        self.anchor, self.positive, self.negative = draw(labels), draw(labels), draw((labels + 1) % 3)
        self.labels = torch.from_numpy(labels)

    def __len__(self):
        return self.anchor.size(0)

    def __getitem__(self, index):
        return (self.anchor[index], self.positive[index], self.negative[index]), self.labels[index]


class SiameseNetwork(nn.Module):
    def __init__(self):
        super(SiameseNetwork, self).__init__()
        self.cnn = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.PReLU(), nn.MaxPool2d(2, stride=2))
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward_once(self, x):
        return self.fc(self.cnn(x))

    def forward(self, *inputs):
        return [self.forward_once(x) for x in inputs]


model = SiameseNetwork()
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape)).astype(np.float32)))
loader = DataLoader(Triplets(24), batch_size=8, shuffle=False, num_workers=0, drop_last=True)
optimizer = optim.Adadelta(model.parameters(), lr=1.0)
scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
criterion = nn.TripletMarginLoss(margin=1.0, p=2)
history = []
for epoch in range(4):
    model.train()
    for (anchor, positive, negative), _ in loader:
        optimizer.zero_grad()
        a, p, n = model(anchor, positive, negative)
        loss = criterion(a, p, n) + 0.1 * F.cosine_embedding_loss(a, n, -torch.ones(len(a)))
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    scheduler.step()
    history.append(scheduler.get_last_lr()[0])

file = io.BytesIO()
torch.save({'epoch': epoch, 'state_dict': model.state_dict(), 'optimizer': optimizer.state_dict()}, file)
file.seek(0)
checkpoint = torch.load(file)
again = SiameseNetwork()
again.load_state_dict(checkpoint['state_dict'])
optimizer.load_state_dict(checkpoint['optimizer'])
again.eval(), model.eval()
with torch.no_grad():
    (anchor, positive, negative), _ = next(iter(loader))
    a, p, n = again(anchor, positive, negative)
    near, far = F.pairwise_distance(a, p), F.pairwise_distance(a, n)
    assert torch.equal(a, model.forward_once(anchor)) if isinstance(torch.equal(a, a), bool) else (a == model.forward_once(anchor)).all()
history += [near.mean().item(), far.mean().item()]
assert history[0] > history[-4]
