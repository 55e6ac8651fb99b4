"""Super resolution by sub-pixel convolution, in the style of PyTorch's example."""
from math import log10
import numpy as np
import chainrule as torch
import chainrule.nn as nn
import chainrule.nn.init as init
import chainrule.optim as optim
from chainrule.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 8, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(8, 8, (3, 3), (1, 1), (1, 1))
        self.conv4 = nn.Conv2d(8, upscale_factor ** 2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        return self.pixel_shuffle(self.conv4(x))

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain('relu'))
        init.orthogonal_(self.conv4.weight)
        init.constant_(self.conv4.bias, 0.0)


x = np.linspace(0, 3, 12)
images = np.stack([np.sin(a * x[:, None] + b * x) for a, b in rng.normal(size=(12, 2))])[:, None].astype(np.float32)
high = torch.from_numpy(images)
low = nn.functional.interpolate(high, scale_factor=0.5, mode='bicubic', align_corners=False)
loader = DataLoader(dataset=TensorDataset(low, high), batch_size=4)
model = Net(upscale_factor=2)
for p in model.parameters():
    p.data.copy_(torch.from_numpy(rng.normal(0, 0.15, tuple(p.size())).astype(np.float32)))
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.01)
scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[3, 5], gamma=0.5)
history = []


def train(epoch):
    epoch_loss = 0
    for iteration, batch in enumerate(loader, 1):
        input, target = batch[0], batch[1]
        optimizer.zero_grad()
        loss = criterion(model(input), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
    history.append(epoch_loss / len(loader))
    scheduler.step()


def test():
    avg_psnr = 0
    with torch.no_grad():
        for batch in loader:
            mse = criterion(model(batch[0]), batch[1])
            avg_psnr += 10 * log10(1 / mse.item())
    history.append(avg_psnr / len(loader))


for epoch in range(1, 7):
    train(epoch)
    test()
assert history[-2] < history[0]
