"""Forward mode with dual tensors, ensembles, per-sample gradients and Hessians, as in tutorials."""
import numpy as np
import chainrule as torch
import chainrule.nn as nn
import chainrule.autograd.forward_ad as fwAD
from chainrule.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap

rng = np.random.default_rng(0)
draw = lambda *shape: torch.from_numpy(rng.normal(size=shape))


class SimpleMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 5), nn.Linear(5, 2)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x.flatten(1))))


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, foo):
        result = torch.exp(foo)
        ctx.result = result
        return result

    @staticmethod
    def jvp(ctx, gI):
        gO = gI * ctx.result
        del ctx.result
        return gO


history = []
models = [SimpleMLP().double() for _ in range(3)]
for model in models:
    for p in model.parameters():
        p.data = draw(*p.shape)
x, y = draw(6, 2, 2), torch.tensor([0, 1, 0, 1, 0, 1])
params, buffers = stack_module_state(models)
base = models[0]
fmodel = lambda params, buffers, x: functional_call(base, (params, buffers), (x,))
ensemble = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, x)
history += ensemble.flatten().tolist()

weights = {k: v.detach() for k, v in base.named_parameters()}
compute_loss = lambda params, sample, target: nn.functional.cross_entropy(functional_call(base, params, (sample.unsqueeze(0),)), target.unsqueeze(0))
per_sample = vmap(grad(compute_loss), in_dims=(None, 0, 0))(weights, x, y)
history += [g.pow(2).sum().item() for g in per_sample.values()]

with fwAD.dual_level():
    dual_input = fwAD.make_dual(x, torch.ones_like(x))
    out = base(dual_input)
    tangent = fwAD.unpack_dual(out).tangent
    history += tangent.flatten().tolist()
    history += fwAD.unpack_dual(Fn.apply(dual_input)).tangent.flatten().tolist()
assert fwAD.unpack_dual(out).tangent is None
assert torch.allclose(jvp(base, (x,), (torch.ones_like(x),))[1], tangent)

f = lambda v: (v.sin() * v.roll(1)).cumsum(0)
v = draw(3)
history += jacrev(f)(v).flatten().tolist() + jacfwd(f)(v).flatten().tolist()
history += hessian(lambda v: f(v).sum())(v).flatten().tolist()
history += vjp(f, v)[1](torch.ones_like(v))[0].tolist()
history += torch.autograd.functional.jacobian(f, v).flatten().tolist()
assert torch.autograd.gradcheck(f, v.requires_grad_())
torch.testing.assert_close(f(v), f(v.clone()))
