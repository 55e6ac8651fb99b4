"""`implicit_function`: the solution of an equation, differentiable whatever computed it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.conversions import RUNNING, DifferentiatedError
from chainrule.autograd.function_wrapper import FunctionWrapper, Made
from chainrule.autograd.intercept import INTERCEPTOR
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.node import endpoint, reachable
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq
from chainrule.autograd.views import current_node
from chainrule.backend import is_known
from chainrule.errors import ShapeError
from chainrule.implicit.examples import with_solver
from chainrule.implicit.implicit_node import solution
from chainrule.implicit.inverse import inverse_maker
from chainrule.implicit.vectors import VectorLayout, vector_of
from chainrule.interop.operands import arrays_of
from chainrule.transforms.arguments import split_aux, title_of

__all__ = ["implicit_function"]


def implicit_function(
    solver: Callable[..., Any],
    residual: Callable[..., Any],
    *,
    has_aux: bool = False,
    linear_solver: str | None = None,
) -> Callable[..., Any]:
    """Return a function that solves an equation, with the derivatives of the solution.

    Parameters
    ----------
    solver : callable
        ``solver(*params)`` returns the solution: an array, a number, or dicts, lists, tuples,
        dataclasses of them. It may be any code, of SciPy, of NumPy, in loops: it is not recorded.
        It gets arrays without history, or Tensors without history where `params` are Tensors.
    residual : callable
        ``residual(solution, *params)`` is zero at the solution: as many numbers as the solution
        has, computed by operations that are recorded.
    has_aux : bool, default False
        `solver` returns a pair, whose second part is auxiliary data, which is returned as it is:
        under `vmap` in a list, for each example.
    linear_solver : "dense", "gmres", "cg" or None, default None
        How to solve the linear system of the derivative: by the LU decomposition of the Jacobian,
        or by products with it, "cg" for one that is symmetric and positive definite. None says
        "dense" for up to 1000 unknowns, and "gmres" beyond.

    Returns
    -------
    callable
        Takes the parameters, and returns the solution, or ``(solution, aux)``. It is differentiable
        with respect to everything that `residual` depends on: its parameters, and tensors that it
        closes over.

    Raises
    ------
    AutogradError
        If the residual doesn't depend on the solution, or is nan there.
    LinAlgError
        When a derivative is computed, if the Jacobian of the residual is singular.
    ShapeError, DTypeError
        If the residual has another number of elements than the solution, or is of integers.
    CompileError
        In a compiled function, which has no numbers while it is traced, if `solver` needs some, as
        SciPy's do. A solver in recorded operations and `while_loop` is compiled.

    Warns
    -----
    UserWarning
        When a derivative is computed, if the residual is not zero at the solution.
    PerformanceWarning
        Under `vmap`, where the solver runs for one example after the other.

    Notes
    -----
    By the implicit function theorem, the solution x of F(x, θ) = 0 has the derivative
    dx = -(∂F/∂x)⁻¹ (∂F/∂θ) dθ, however it was computed: one linear system for each cotangent or
    tangent. Exact to every order, in both modes; a second derivative calls `residual` again. A
    complex equation need not be holomorphic. A compiled function doesn't check that the residual is
    zero, and its Jacobian not singular.

    References
    ----------
    B. Christianson, Reverse accumulation and attractive fixed points, Optimization Methods and
    Software 3, 1994; M. Blondel et al., Efficient and modular implicit differentiation, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> def newton(a):
    ...     x = 1.0
    ...     for _ in range(20):
    ...         x = x - (x**3 - a) / (3 * x**2)
    ...     return x
    >>> cube_root = cr.implicit_function(newton, lambda x, a: x**3 - a)
    >>> round(cr.grad(cube_root)(8.0), 6), round(cr.grad(cr.grad(cube_root))(8.0), 6)
    (0.083333, -0.006944)

    A solver of SciPy, and a solution with names:

    >>> from scipy import optimize
    >>> def equilibrium(p, a):
    ...     return {"x": p["x"] ** 2 + p["y"] - a[0], "y": p["x"] - p["y"] ** 2 + a[1]}
    >>> def solve(a):
    ...     p, unravel = cr.tree.ravel({"x": 1.0, "y": 1.0})
    ...     f = lambda v: cr.tree.ravel(equilibrium(unravel(v), a))[0]
    ...     return unravel(optimize.root(f, p, tol=1e-12).x)
    >>> f = cr.implicit_function(solve, equilibrium)
    >>> cr.jacobian(f)(np.array([2.0, 0.0]))["x"].round(4)
    array([ 0.4, -0.2])
    """
    title = "implicit_function"
    inverse_maker(title, linear_solver, 0)  # checks the name

    def solved(*params: Any, **settings: Any) -> Any:
        found: list[tuple[Any, Any]] = []  # for each example of a vmap

        def numbers() -> list[Any]:
            given, named = without_history((params, settings))
            found.append(split_aux(title, solver, solver(*given, **named), has_aux))
            return [numbers_of(vector_of(f"{title}: the solution", found[-1][0]))]

        (value,) = with_solver(f"{title}({title_of(solver)})", numbers)
        layout = VectorLayout(title, found[0][0])
        as_arrays = are_arrays((params, settings, layout.tree))

        def equation(x: Tensor) -> Tensor:
            tree = layout.tree_of(x, as_arrays)
            rest = vector_of(f"{title}: the residual", residual(tree, *params, **settings))
            check_count(title, residual, rest, layout)
            return rest

        maker = inverse_maker(title, linear_solver, layout.size)
        result = differentiable(title, equation, value, maker, layout, as_arrays)
        aux = [aux for _, aux in found]
        return (result, aux[0] if len(aux) == 1 else aux) if has_aux else result

    settings = {"has_aux": has_aux, "linear_solver": linear_solver}
    return FunctionWrapper(solved, solver, Made(implicit_function, (solver, residual), settings))


# --- parts that solvers of several packages share -------------------------------------------------


def without_history(tree: Any) -> Any:
    """Return a tree with arrays for arrays that record, and Tensors without history for Tensors."""

    def plain(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if not leaf.is_carried or not is_known(leaf._array):
            return leaf.detach()
        array = np.array(arrays_of(leaf))
        return array if array.ndim else array[()]

    return pytree.map_leaves(tree, plain)


def _is_differentiated(call: Callable[[], Any]) -> bool:
    """Return whether the result of a call depends on what required grad before, or may do."""
    if RUNNING.get() is not None or INTERCEPTOR.get() is not None:
        return True
    begin = next_seq()
    edges = [current_node(t) for _, t in pytree.leaves(call()) if isinstance(t, Tensor)]
    roots = [endpoint(edge)[0] for edge in edges if edge is not None]
    return any(node.seq < begin for node in reachable(roots))


def numbers_of(vector: Tensor) -> Any:
    """Return the numbers of a tensor in an array of its own."""
    known = is_known(vector._array)
    return np.array(arrays_of(vector)) if known else vector.detach().clone()._array


def are_arrays(trees: Any) -> bool:
    """Whether results are to behave as NumPy's arrays: not where a Tensor is given."""
    return not any([type(leaf) is Tensor for _, leaf in pytree.leaves(trees)])


def check_count(title: str, residual: Any, rest: Tensor, layout: VectorLayout) -> None:
    """Raise unless there are as many equations as unknowns."""
    if rest.shape != (layout.size,):
        raise ShapeError(
            f"{title}: {title_of(residual)} returned {rest.shape[0]} numbers for {layout.size} "
            "unknowns: an equation for each unknown is needed (a complex number counts twice)"
        )


def differentiable(
    title: str,
    equation: Callable[[Tensor], Tensor],
    value: Any,
    maker: Any,
    layout: VectorLayout,
    as_arrays: bool,
    unrecorded: Callable[[], Any] | None = None,
) -> Any:
    """Return the tree of a solution: of tensors if it depends on what requires grad.

    `value` may have more unknowns than the tree, at its end. Foreign code can't be recorded: its
    solution is a constant if `unrecorded`, a call of it with numbers, depends on nothing either.
    """
    value = value.astype(layout.dtype)
    x = make(value, None)
    if is_grad_enabled() and layout.size:
        try:
            x = solution(equation, value, maker, title=title)
        except DifferentiatedError:
            if unrecorded is None or _is_differentiated(unrecorded):
                raise
    if not x.requires_grad and is_known(value):
        return layout.tree
    return layout.tree_of(x[: layout.size] if x.shape[0] > layout.size else x, as_arrays)
