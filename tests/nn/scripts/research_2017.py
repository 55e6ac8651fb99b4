"""In the style of research code of 2017: Variable, .data, typed constructors, implicit softmax."""
import numpy as np
import chainrule as torch
import chainrule.nn as nn
import chainrule.nn.functional as F
import chainrule.optim as optim
import chainrule.backends.cudnn as cudnn
from chainrule.autograd import Variable
from chainrule.utils.data.dataset import Dataset
from chainrule.utils.data.dataloader import DataLoader

use_cuda = torch.cuda.is_available()
torch.manual_seed(1)
torch.cuda.manual_seed_all(1)
cudnn.benchmark = True
torch.set_default_tensor_type('torch.FloatTensor')


def weights_init(m):
    name = m.__class__.__name__
    if name.find('Linear') != -1:
        m.weight.data.normal_(0.0, 0.3)
        m.bias.data.fill_(0)


class Spirals(Dataset):
    def __init__(self, n=200):
        t = np.random.RandomState(0).rand(n, 1) * 3 + 0.5
        label = np.arange(n) % 2
        angle = 2 * t[:, 0] + np.pi * label
        self.x = torch.FloatTensor(np.stack([t[:, 0] * np.cos(angle), t[:, 0] * np.sin(angle)], 1))
        self.y = torch.LongTensor(label)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

    def __len__(self):
        return self.x.size(0)


class Attention(nn.Module):
    def __init__(self, n):
        super(Attention, self).__init__()
        self.score = nn.Linear(n, n)
        self.dtype = torch.FloatTensor

    def forward(self, x):
        return x * F.softmax(self.score(x), dim=1) * Variable(x.data.new(x.size(1)).fill_(4))


net = nn.DataParallel(nn.Sequential(nn.Linear(2, 24), nn.Tanh(), Attention(24), nn.Linear(24, 2)))
net.apply(weights_init)
criterion = nn.CrossEntropyLoss(size_average=True)
optimizer = optim.Adam(filter(lambda p: p.requires_grad, net.parameters()), lr=2e-2, betas=(0.5, 0.999))
loader = DataLoader(Spirals(), batch_size=40, shuffle=True, num_workers=0, pin_memory=use_cuda)
for epoch in range(60):
    running, correct = 0.0, 0
    for g in optimizer.param_groups:
        g['lr'] = 2e-2 * (0.5 ** (epoch // 30))
    for x, y in loader:
        if use_cuda:
            x, y = x.cuda(), y.cuda()
        x, y = Variable(x), Variable(y)
        optimizer.zero_grad()
        out = net(x)
        loss = criterion(out, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm(net.parameters(), 5)
        optimizer.step()
        running += loss.data.item() * x.size(0)
        correct += out.data.max(1)[1].eq(y.data).cpu().sum().item()
print('loss %.4f, accuracy %.3f' % (running / 200, correct / 200))
assert correct / 200 > 0.9
assert out.type() == 'torch.FloatTensor' and isinstance(y, torch.LongTensor)
assert list(net.state_dict())[0] == 'module.0.weight'
