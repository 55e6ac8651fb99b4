"""A GAN with spectral norm in the discriminator and weight norm in the generator, of both styles."""
import copy
import numpy as np
import chainrule as torch
import chainrule.nn as nn
import chainrule.nn.functional as F
from chainrule.nn.utils import parametrizations, parametrize, remove_weight_norm, spectral_norm, weight_norm

rng = np.random.default_rng(0)
draw = lambda *shape: torch.from_numpy(rng.normal(0, 0.3, shape).astype(np.float32))


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


G = nn.Sequential(weight_norm(nn.ConvTranspose2d(4, 6, 3), name='weight'), nn.LeakyReLU(0.2, inplace=True),
                  parametrizations.weight_norm(nn.ConvTranspose2d(6, 1, 4, 2, 1)), nn.Tanh())
D = nn.Sequential(spectral_norm(nn.Conv2d(1, 6, 3, 2, 1)), nn.LeakyReLU(0.1), nn.Flatten(),
                  parametrizations.spectral_norm(nn.Linear(54, 8)), nn.ReLU(),
                  parametrize.register_parametrization(nn.Linear(8, 8), 'weight', Symmetric()), nn.Linear(8, 1))
with torch.no_grad():
    for net in (G, D):
        for value in [*net.parameters(), *net.buffers()]:  # singular vectors, too
            value.copy_(draw(*value.shape))
        for name, buffer in net.named_buffers():
            buffer.copy_(F.normalize(buffer, dim=0))
optG = torch.optim.Adam(G.parameters(), lr=5e-3, betas=(0.5, 0.9))
optD = torch.optim.Adam(D.parameters(), lr=5e-3, betas=(0.5, 0.9))
real = torch.sign(draw(8, 1, 6, 6))
history = []
for step in range(6):
    z = draw(8, 4, 1, 1)
    optD.zero_grad()
    loss_d = F.relu(1.0 - D(real)).mean() + F.relu(1.0 + D(G(z).detach())).mean()
    loss_d.backward()
    optD.step()
    optG.zero_grad()
    loss_g = -D(G(z)).mean()
    loss_g.backward()
    optG.step()
    history += [loss_d.item(), loss_g.item()]
history += [value.abs().sum().item() for value in [*G.state_dict().values(), *D.state_dict().values()]]
remove_weight_norm(G[0])
parametrize.remove_parametrizations(G[2], 'weight')
G.eval(), D.eval()
history.append(D(G(z)).sum().item())
assert not parametrize.is_parametrized(G[2]) and 'weight' in dict(G[0].named_parameters())
print(G, D, list(D.state_dict()))
