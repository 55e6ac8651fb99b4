"""A mixture density network, and a policy with Categorical and Normal distributions."""
import numpy as np
import chainrule as torch
import chainrule.nn as nn
from chainrule.distributions import Categorical, Normal, kl_divergence

rng = np.random.default_rng(0)
torch.set_default_dtype(torch.float64)


class MDN(nn.Module):
    def __init__(self, n_hidden, n_gaussians):
        super().__init__()
        self.z_h = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh())
        self.z_pi = nn.Linear(n_hidden, n_gaussians)
        self.z_mu = nn.Linear(n_hidden, n_gaussians)
        self.z_sigma = nn.Linear(n_hidden, n_gaussians)

    def forward(self, x):
        z_h = self.z_h(x)
        return Categorical(logits=self.z_pi(z_h)), Normal(self.z_mu(z_h), torch.exp(self.z_sigma(z_h)))


def mdn_loss(pi, normal, y):
    log_prob = normal.log_prob(y.expand(-1, pi.logits.size(1)))
    return -torch.logsumexp(pi.logits + log_prob, dim=1).mean()


y = torch.linspace(-10, 10, 60).unsqueeze(1)
x = 7 * torch.sin(0.75 * y) + 0.5 * y + torch.from_numpy(rng.normal(size=(60, 1))).double()
model = MDN(n_hidden=12, n_gaussians=4)
for p in model.parameters():
    nn.init.zeros_(p)
    p.data += torch.from_numpy(rng.normal(0, 0.4, tuple(p.shape))).double()
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.5, centered=True)
history = []
for epoch in range(40):
    pi, normal = model(x / 10)
    loss = mdn_loss(pi, normal, y / 10)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
assert history[-1] < history[0]
with torch.no_grad():
    pi, normal = model(x[:5] / 10)
    history += pi.entropy().tolist() + pi.probs.sum(1).tolist()
    history += pi.log_prob(torch.tensor([0, 1, 2, 3, 0])).tolist()
    history += kl_divergence(normal, Normal(torch.zeros(4), torch.ones(4))).sum(1).tolist()
    sample = normal.sample()
    k = pi.sample()
    assert sample.gather(1, k.unsqueeze(1)).shape == (5, 1) and k.dtype == torch.int64
torch.set_default_dtype(torch.float32)
