"""A script of `torch.distributed`: each process trains on its share of the data.

``mpiexec -n 2 python ddp_program.py`` prints what one process prints, which trains on all of it.
"""

import chainrule as torch
import chainrule.distributed as dist
import chainrule.distributed.nn
import chainrule.nn as nn
from chainrule.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group(backend="gloo")
rank, size = dist.get_rank(), dist.get_world_size()

x = torch.arange(24.0).reshape(8, 3) / 10
y = x.sin().sum(1, keepdim=True)
torch.manual_seed(1)
weights = nn.Linear(3, 1).state_dict()
torch.manual_seed(rank)  # other initial weights in each process
net = nn.Sequential(nn.Linear(3, 1))
if rank == 0:
    net[0].load_state_dict(weights)
net.register_buffer("steps", torch.tensor(float(10 * rank)))
model = DDP(net, device_ids=None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
mine = slice(rank * 8 // size, (rank + 1) * 8 // size)
for step in range(6):
    for part in (slice(0, 2), slice(2, 4)) if step % 2 else (slice(0, 4),):  # accumulates
        total = nn.functional.mse_loss(model(x[mine]), y[mine])
        if part.start == 0 and step % 2:
            with model.no_sync():
                total.backward()
        else:
            total.backward()
    optimizer.step()
    optimizer.zero_grad()
    net.steps += 1 + rank

everyone = [torch.zeros(2) for _ in range(size)]
dist.all_gather(everyone, torch.tensor([1.0, 10.0]))
names = [None] * size
dist.all_gather_object(names, {"rank": rank})
largest, total, sent = torch.tensor([rank + 1.0]), torch.ones(1), torch.tensor([rank + 5.0])
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
dist.reduce(total, 0)
handle = dist.broadcast(sent, src=0, async_op=True)
handle.wait()
model(x)  # takes the buffers of the first process
flat = [round(v, 5) for p in model.parameters() for v in p.flatten().tolist()]
same = torch.tensor(flat)
dist.all_reduce(same, op=dist.ReduceOp.AVG)
assert torch.allclose(same, torch.tensor(flat)), rank
assert (largest.item(), sent.item(), net.steps.item()) == (size, 5, 6), rank
assert [each["rank"] for each in names] == list(range(size))
assert all(each.tolist() == [1, 10] for each in everyone)
assert rank or total.item() == size
shared = torch.tensor([rank + 2.0], requires_grad=True)
parts = dist.nn.all_gather(dist.nn.all_reduce(shared) * shared)  # a number of each process
sum(part.sum() * (i + 1) for i, part in enumerate(parts)).backward()
ranks = range(size)
wanted = size * sum((i + 1) * (i + 2.0) for i in ranks) + size * (rank + 1) * sum(
    i + 2 for i in ranks
)
assert shared.grad.item() == wanted, (rank, shared.grad, wanted)
dist.barrier()
if rank == 0:
    print(*flat)
dist.destroy_process_group()
assert not dist.is_initialized()
