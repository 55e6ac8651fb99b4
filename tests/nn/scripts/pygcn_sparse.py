"""A graph convolution network on a sparse adjacency matrix, in the style of pygcn."""
import math
import numpy as np
import chainrule as torch
import chainrule.nn.functional as F
import chainrule.nn as nn
from chainrule.nn.parameter import Parameter
from chainrule.nn.modules.module import Module

rng = np.random.RandomState(42)


class GraphConvolution(Module):
    def __init__(self, in_features, out_features, bias=True):
        super(GraphConvolution, self).__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter('bias', None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1. / math.sqrt(self.weight.size(1))
        self.weight.data = torch.from_numpy(rng.uniform(-stdv, stdv, self.weight.shape).astype(np.float32))
        if self.bias is not None:
            self.bias.data.fill_(0.01)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.spmm(adj, support)
        return output + self.bias if self.bias is not None else output

    def __repr__(self):
        return self.__class__.__name__ + ' (' + str(self.in_features) + ' -> ' + str(self.out_features) + ')'


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super(GCN, self).__init__()
        self.gc1, self.gc2, self.dropout = GraphConvolution(nfeat, nhid), GraphConvolution(nhid, nclass), dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


labels = np.arange(30) % 2
dense = (rng.rand(30, 30) < np.where(labels[:, None] == labels, 0.3, 0.03)) | np.eye(30, dtype=bool)
dense = dense / dense.sum(1, keepdims=True)
row, col = dense.nonzero()
indices = torch.from_numpy(np.vstack((row, col)).astype(np.int64))
values = torch.from_numpy(dense[row, col].astype(np.float32))
adj = torch.sparse_coo_tensor(indices, values, torch.Size(dense.shape)).coalesce()
assert adj.is_sparse and adj._nnz() == len(row) and adj.size(0) == 30
assert torch.allclose(adj.to_dense(), torch.FloatTensor(dense))
labels = torch.LongTensor(labels)
model = GCN(nfeat=30, nhid=8, nclass=2, dropout=0.0)
print(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
idx_train = torch.LongTensor(range(6))
history = []
for epoch in range(40):
    model.train()
    optimizer.zero_grad()
    output = model(torch.eye(30), adj)
    loss = F.nll_loss(output[idx_train], labels[idx_train])
    loss.backward()
    optimizer.step()
    history.append(loss.item())
attention = torch.sparse.softmax(adj, dim=1)
history.append(torch.sparse.mm(attention, torch.ones(30, 1)).sum().item())
history.append(output.max(1)[1].eq(labels).float().mean().item())
assert history[-1] > 0.8
