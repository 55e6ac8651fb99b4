"""A graph attention network on sparse matrices with a custom function, in the style of pyGAT."""
import numpy as np
import chainrule as torch
import chainrule.nn as nn
import chainrule.nn.functional as F
import chainrule.optim as optim
from chainrule.autograd import Variable

rng = np.random.RandomState(72)


class SpecialSpmmFunction(torch.autograd.Function):
    """Special function for only sparse region backpropataion layer."""
    @staticmethod
    def forward(ctx, indices, values, shape, b):
        assert indices.requires_grad == False
        a = torch.sparse_coo_tensor(indices, values, shape)
        ctx.a = a
        ctx.save_for_backward(b)
        ctx.N = shape[0]
        return torch.matmul(a, b)

    @staticmethod
    def backward(ctx, grad_output):
        a, (b,) = ctx.a, ctx.saved_tensors
        grad_values = grad_b = None
        if ctx.needs_input_grad[1]:
            grad_a_dense = grad_output.matmul(b.t())
            edge_idx = a._indices()[0, :] * ctx.N + a._indices()[1, :]
            grad_values = grad_a_dense.view(-1)[edge_idx]
        if ctx.needs_input_grad[3]:
            grad_b = a.t().matmul(grad_output)
        return None, grad_values, None, grad_b


class SpecialSpmm(nn.Module):
    def forward(self, indices, values, shape, b):
        return SpecialSpmmFunction.apply(indices, values, shape, b)


class SpGraphAttentionLayer(nn.Module):
    def __init__(self, in_features, out_features, alpha, concat=True):
        super(SpGraphAttentionLayer, self).__init__()
        self.concat = concat
        self.W = nn.Parameter(torch.zeros(size=(in_features, out_features)))
        nn.init.xavier_normal_(self.W.data, gain=1.414)
        self.a = nn.Parameter(torch.zeros(size=(1, 2 * out_features)))
        nn.init.xavier_normal_(self.a.data, gain=1.414)
        self.leakyrelu = nn.LeakyReLU(alpha)
        self.special_spmm = SpecialSpmm()

    def forward(self, input, adj):
        dv = 'cuda' if input.is_cuda else 'cpu'
        N = input.size()[0]
        edge = adj.nonzero().t()
        h = torch.mm(input, self.W)
        assert not torch.isnan(h).any()
        edge_h = torch.cat((h[edge[0, :], :], h[edge[1, :], :]), dim=1).t()
        edge_e = torch.exp(-self.leakyrelu(self.a.mm(edge_h).squeeze()))
        e_rowsum = self.special_spmm(edge, edge_e, torch.Size([N, N]), torch.ones(size=(N, 1), device=dv))
        h_prime = self.special_spmm(edge, edge_e, torch.Size([N, N]), h).div(e_rowsum)
        return F.elu(h_prime) if self.concat else h_prime


class SpGAT(nn.Module):
    def __init__(self, nfeat, nhid, nclass, alpha, nheads):
        super(SpGAT, self).__init__()
        self.attentions = [SpGraphAttentionLayer(nfeat, nhid, alpha=alpha, concat=True) for _ in range(nheads)]
        for i, attention in enumerate(self.attentions):
            self.add_module('attention_{}'.format(i), attention)
        self.out_att = SpGraphAttentionLayer(nhid * nheads, nclass, alpha=alpha, concat=False)

    def forward(self, x, adj):
        x = torch.cat([att(x, adj) for att in self.attentions], dim=1)
        return F.log_softmax(F.elu(self.out_att(x, adj)), dim=1)


labels = np.arange(24) % 3
adj = (rng.rand(24, 24) < np.where(labels[:, None] == labels, 0.5, 0.03)) | np.eye(24, dtype=bool)
features = Variable(torch.FloatTensor(np.eye(24)))
adj, labels = Variable(torch.FloatTensor(adj.astype(float))), Variable(torch.LongTensor(labels))
idx_train, idx_test = torch.LongTensor(range(9)), torch.LongTensor(range(9, 24))
model = SpGAT(24, 4, 3, alpha=0.2, nheads=2)
for p in model.parameters():
    p.data = torch.from_numpy(rng.normal(0, 0.4, p.shape)).float()
optimizer = optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
history = []
for epoch in range(25):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    history.append(loss_train.data.item())
preds = output[idx_test].max(1)[1].type_as(labels)
history.append(preds.eq(labels[idx_test]).double().sum().item())
assert history[-2] < history[0]
