import chainrule as torch
from chainrule import nn, optim
from chainrule.nn import functional as F
from sklearn.datasets import load_digits
torch.manual_seed(0)
class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 5)
        self.fc22 = nn.Linear(40, 5)
        self.fc3 = nn.Linear(5, 40)
        self.fc4 = nn.Linear(40, 64)
    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)
    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5*logvar)
        eps = torch.randn_like(std)
        return mu + eps*std
    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))
    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar
model = VAE().to("cpu")
optimizer = optim.Adam(model.parameters(), lr=1e-3)
def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction='sum')
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD
x = torch.tensor(load_digits().images / 16, dtype=torch.float32)
first = None
for epoch in range(8):
    train_loss = 0
    for b in range(0, len(x), 128):
        data = x[b:b+128]
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward(); train_loss += loss.item(); optimizer.step()
    first = first or train_loss
    print(epoch, train_loss / len(x))
assert train_loss < 0.8 * first
