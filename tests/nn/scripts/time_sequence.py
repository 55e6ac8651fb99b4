"""Prediction of sine waves by LSTM cells and LBFGS with a closure."""
import numpy as np
import chainrule as torch
import chainrule.nn as nn
import chainrule.optim as optim

np.random.seed(2)
torch.manual_seed(0)
shift = np.random.randint(-40, 40, 8).reshape(8, 1)
data = np.sin((np.arange(30) + shift) / 4).astype('float64')


class Sequence(nn.Module):
    def __init__(self):
        super(Sequence, self).__init__()
        self.lstm1 = nn.LSTMCell(1, 12)
        self.linear = nn.Linear(12, 1)

    def forward(self, input, future=0):
        outputs = []
        h = torch.zeros(input.size(0), 12, dtype=torch.double)
        c = torch.zeros(input.size(0), 12, dtype=torch.double)
        for input_t in input.split(1, dim=1):
            h, c = self.lstm1(input_t, (h, c))
            output = self.linear(h)
            outputs += [output]
        for i in range(future):
            h, c = self.lstm1(output, (h, c))
            output = self.linear(h)
            outputs += [output]
        return torch.cat(outputs, dim=1)


input = torch.from_numpy(data[3:, :-1])
target = torch.from_numpy(data[3:, 1:])
seq = Sequence()
seq.double()
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=8, line_search_fn='strong_wolfe')
for i in range(4):
    def closure():
        optimizer.zero_grad()
        loss = criterion(seq(input), target)
        loss.backward()
        return loss
    first = optimizer.step(closure)
with torch.no_grad():
    pred = seq(torch.from_numpy(data[:3, :-1]), future=5)
    loss = criterion(pred[:, :-5], torch.from_numpy(data[:3, 1:]))
print('test loss:', loss.item(), pred.detach().numpy().shape)
assert loss.item() < 0.05
