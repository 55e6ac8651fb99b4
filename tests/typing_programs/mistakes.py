"""Mistakes that type checkers find, each on a line that says so: this file is never run.

An ignored error that is none is itself an error, in mypy (`warn_unused_ignores`) and in pyright
(`reportUnnecessaryTypeIgnoreComment`).
"""

from __future__ import annotations

import chainrule as cr

x = cr.ones(3)

# names
cr.sine(x)  # type: ignore[attr-defined]
x.sine()  # type: ignore[attr-defined]
cr.linalg.slove(x, x)  # type: ignore[attr-defined]
cr.nn.functional.rleu(x)  # type: ignore[attr-defined]
cr.random.gaussian(3)  # type: ignore[attr-defined]
cr.optim.Adamw([x])  # type: ignore[attr-defined]
cr.autograd.gradient(x, x)  # type: ignore[attr-defined]

# operands: tensors, arrays and numbers
cr.sin("one")  # type: ignore[arg-type]
cr.sin([1.0, 2.0])  # type: ignore[arg-type]
cr.add(x, None)  # type: ignore[arg-type]
x.mul("2")  # type: ignore[arg-type]
x.exp_(2)  # type: ignore[call-arg]
cr.exp_(x, 2)  # type: ignore[arg-type, call-arg]
x + "1"  # type: ignore[operator]
x @ [1.0, 2.0, 3.0]  # type: ignore[operator]
print(x < "a")  # type: ignore[operator]

# settings
cr.sum(x, "rows")  # type: ignore[arg-type]
x.sum(dmi=0)  # type: ignore[call-arg]
x.sort(descending="yes")  # type: ignore[call-overload]
x.transpose(0)  # type: ignore[call-arg]
cr.manual_seed("one")  # type: ignore[arg-type]
cr.grad(3)  # type: ignore[arg-type]
cr.optim.SGD([x], lr="fast")  # type: ignore[arg-type]

# results
a: int = x.sum()  # type: ignore[assignment]
b: float = x.shape  # type: ignore[assignment]
c: cr.Tensor = x.max(0)  # type: ignore[assignment]
x.T = x  # type: ignore[misc]
x.grad * 2  # type: ignore[operator]

x += None  # type: ignore[arg-type]
