import chainrule as torch
import chainrule.nn as nn
import chainrule.optim as optim
torch.manual_seed(3)
text = "hello world, this is a tiny text for a tiny network. " * 8
chars = sorted(set(text)); stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
class CharRNN(nn.Module):
    def __init__(self, n, hidden=48, layers=1, kind="LSTM"):
        super().__init__()
        self.encoder = nn.Embedding(n, 16)
        self.rnn = getattr(nn, kind)(16, hidden, layers, batch_first=True)
        self.decoder = nn.Linear(hidden, n)
        self.init_weights()
    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -initrange, initrange)
    def forward(self, x, hidden=None):
        out, hidden = self.rnn(self.encoder(x), hidden)
        return self.decoder(out), hidden
for kind in ("LSTM", "GRU"):
    model = CharRNN(len(chars), kind=kind)
    criterion = nn.CrossEntropyLoss()
    opt = optim.Adam(model.parameters(), lr=0.01)
    for it in range(60):
        i = torch.randint(0, len(data) - 33, (8,))
        xb = torch.stack([data[j:j+32] for j in i]); yb = torch.stack([data[j+1:j+33] for j in i])
        logits, _ = model(xb)
        loss = criterion(logits.reshape(-1, len(chars)), yb.reshape(-1))
        opt.zero_grad(); loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
    print(kind, loss.item())
    assert loss.item() < 1.5
    with torch.no_grad():
        x = data[:1].view(1, 1); h = None; s = ""
        for _ in range(30):
            o, h = model(x, h); x = o[:, -1].argmax(-1, keepdim=True); s += chars[x.item()]
    print(s)
