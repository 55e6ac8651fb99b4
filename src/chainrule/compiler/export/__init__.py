"""`export`: write a function as a module that needs only NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from chainrule.compiler.api import uncompiled
from chainrule.compiler.export.containers import find_needs
from chainrule.compiler.export.module import Module
from chainrule.compiler.export.symbolic_sizes import Example, Search, run


def export(
    function: Callable[..., Any], path: str | Path, *examples: Any, **named_examples: Any
) -> Path:
    """Write a module with a function that computes the same as `function`, with NumPy only.

    Parameters
    ----------
    function : callable
        Of tensors or arrays; compiled or not. To export a gradient, export a function that returns
        it: of arguments that require grad, `autograd_grad` gives it.
    path : str or Path
        The file of the module, such as ``model.py``. Parameters of more than 64 elements are
        written to an ``.npz`` file in the same folder.
    *examples, **named_examples
        Arguments to trace the function with. The exported function takes NumPy arrays of their
        dtypes and numbers of dimensions, in the same containers. All other arguments are
        constants.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    CompileError
        If the function can't be traced, sets a `.grad`, draws random numbers, calls a function
        that NumPy alone doesn't have, or takes or returns what a module of NumPy can't check or
        make.

    Notes
    -----
    A dimension may have another size than in the example if the program holds for that size: the
    function is traced at several sizes, and the numbers in which the programs differ become
    formulas of sizes. Other dimensions are pinned to the size of the example: those on which the
    Python code of the function depends (``if x.shape[0] > 10``, ``len(x)``, ``int(n / 2)``, a
    loop), and those that must fit a parameter. The exported function checks its arguments, and
    raises TypeError or ValueError if a dtype, size, container or constant is another one.

    Tensors that the function closes over become the parameters of the module, arrays in its
    `PARAMETERS`. If the function writes to them, the exported one does, too. Named tuples and
    dataclasses among the results become classes of the module with the same fields.

    Examples
    --------
    >>> import tempfile, runpy
    >>> import chainrule as cr
    >>> def centred(x):
    ...     return x - x.mean()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = cr.export(centred, f"{folder}/centred.py", cr.ones(3))
    ...     module = runpy.run_path(str(file))
    >>> module["centred"](np.array([1.0, 3.0], np.float32))
    array([-1.,  1.], dtype=float32)
    >>> module["centred"](np.array([1.0, 3.0]))
    Traceback (most recent call last):
    TypeError: x: expected float32 [n], got float64 [2]
    """
    function = uncompiled(function)
    path = Path(path)
    example = Example(examples, named_examples).contiguous()
    first = run(function, example.args, example.kwargs)
    body = first.body()
    symbolic = Search(function, example, first).find()
    name = getattr(function, "__name__", "")
    doc = inspect.getdoc(function) or ""
    needs = find_needs(function, example, first)
    module = Module(body if symbolic is None else symbolic.body, symbolic, name, doc, *needs)
    beside = path.with_suffix(".npz")
    text = module.text(beside.name)
    if module.large:
        np.savez(beside, allow_pickle=False, **module.large)
    path.write_text(text, encoding="utf-8")
    return path
