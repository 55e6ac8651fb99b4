from __future__ import print_function
import argparse
import chainrule as torch
import chainrule.nn as nn
import chainrule.nn.functional as F
import chainrule.optim as optim
from sklearn.datasets import load_digits

class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, 1, padding=1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout2d(0.5)
        self.fc1 = nn.Linear(512, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.dropout2(x)
        x = self.fc2(x)
        return F.log_softmax(x, dim=1)

def main():
    torch.manual_seed(1)
    device = torch.device("cpu")
    d = load_digits()
    x = torch.from_numpy((d.images / 16).astype("float32")).unsqueeze(1); y = torch.from_numpy(d.target)
    xt, yt, xv, yv = x[:1400], y[:1400], x[1400:], y[1400:]
    model = Net().to(device)
    print(model)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        model.train()
        perm = torch.randperm(len(xt))
        for b in range(0, len(xt), 64):
            idx = perm[b:b+64]
            data, target = xt[idx].to(device), yt[idx].to(device)
            optimizer.zero_grad()
            output = model(data)
            loss = F.nll_loss(output, target)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            output = model(xv)
            test_loss = F.nll_loss(output, yv, reduction='sum').item() / len(xv)
            pred = output.argmax(dim=1, keepdim=True)
            correct = pred.eq(yv.view_as(pred)).sum().item()
        print('epoch {} loss {:.4f} acc {}/{}'.format(epoch, test_loss, correct, len(xv)))
    assert correct / len(xv) > 0.8
main()
