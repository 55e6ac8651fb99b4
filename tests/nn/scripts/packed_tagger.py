"""A tagger of sentences of different lengths: packed sequences, bidirectional LSTM, masked loss."""
import numpy as np
import chainrule as torch
import chainrule.nn as nn
from chainrule.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from chainrule.utils.data import DataLoader

rng = np.random.default_rng(0)
PAD = 0


class Sentences(torch.utils.data.Dataset):
    """The tag of a word is its parity, turned over after word 7."""

    def __init__(self, count):
        self.items = []
        for _ in range(count):
            words = rng.integers(1, 10, rng.integers(2, 9))
            tags = (words + np.maximum.accumulate(words == 7)) % 2
            self.items.append((torch.tensor(words), torch.tensor(tags)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    words, tags = zip(*batch)
    lengths = torch.tensor([len(w) for w in words])
    return pad_sequence(words, batch_first=True, padding_value=PAD), pad_sequence(tags, batch_first=True, padding_value=-100), lengths


class Tagger(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.embedding = nn.Embedding(10, 6, padding_idx=PAD)
        self.rnn = getattr(nn, cell)(6, 8, num_layers=2, batch_first=True, bidirectional=True)
        self.hidden2tag = nn.Linear(16, 2)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embedding(words), lengths, batch_first=True, enforce_sorted=False)
        output, state = self.rnn(packed)
        output, _ = pad_packed_sequence(output, batch_first=True, total_length=words.size(1))
        return self.hidden2tag(output), state


history = []
for cell in ['LSTM', 'GRU', 'RNN']:
    model = Tagger(cell)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape)).astype('float32')))
        model.embedding.weight[PAD].fill_(0)
    loader = DataLoader(Sentences(40), batch_size=10, collate_fn=collate)
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    for epoch in range(4):
        for words, tags, lengths in loader:
            scores, _ = model(words, lengths)
            loss = criterion(scores.transpose(1, 2), tags)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        history.append(loss.item())
    assert history[-1] < history[-4]
