"""How derivatives are taken: tensors, the graph they record, and the passes through it."""

from chainrule.autograd.record import recorder
from chainrule.primitives import TABLE

for _primitive in TABLE.values():
    recorder(_primitive)
