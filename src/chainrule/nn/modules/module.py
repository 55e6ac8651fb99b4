"""The base class of modules: a tree of layers with parameters, buffers and a mode."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from chainrule.arguments import DeviceLike, DTypeLike, destination, dtype_of
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor, is_parameter, member_kind
from chainrule.errors import ArgumentError, ArgumentTypeError, LocatedError
from chainrule.interrupts import call_then
from chainrule.nn.modules.hooks import (  # noqa: F401 - PyTorch has them here
    GLOBAL_HOOKS,
    REGISTRATION_HOOKS,
    Hooked,
    call_with_hooks,
    note_failure,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    shown_to_hooks,
)
from chainrule.nn.modules.members import (
    BUFFER,
    BUFFERS,
    MODULE,
    PARAMETER,
    TRANSIENT,
    Members,
    NotInitialized,
    check_member,
    missing_forward,
    not_initialized,
)
from chainrule.nn.modules.state import (
    IncompatibleKeys,
    load_members,
    load_state,
    save_members,
    save_state,
)
from chainrule.nn.parameter import Parameter, is_uninitialized
from chainrule.pytree import Stateful

M = TypeVar("M", bound="Module")
_OPERATIONS = ("chainrule.ops.", "chainrule.nn.functional.")


def _no_forward(self: Module, *inputs: Any) -> Any:
    """Compute the outputs; every subclass has its own."""
    raise NotImplementedError(missing_forward(self))


class Module(Stateful, Hooked):
    """The base class of layers and networks.

    A subclass makes its layers and parameters in ``__init__``, after ``super().__init__()``, and
    computes in `forward`. A `Parameter` or a module that is assigned to an attribute becomes a
    member: `parameters`, `state_dict`, `to` and the like reach it, in modules at any depth.

    Attributes
    ----------
    training : bool
        Whether the module is in training mode, which dropout and batch normalisation ask for.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule import nn
    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = nn.Linear(4, 8)
    ...         self.output = nn.Linear(8, 1)
    ...
    ...     def forward(self, x):
    ...         return self.output(self.hidden(x).relu())
    >>> net = Net()
    >>> net(cr.ones(3, 4)).shape
    (3, 1)
    >>> [name for name, _ in net.named_parameters()]
    ['hidden.weight', 'hidden.bias', 'output.weight', 'output.bias']
    """

    training: bool
    _kinds: dict[str, str] = NotInitialized()  # type: ignore[assignment]  # raises
    """The kind of each member, by name, in the order of registration."""

    def __init__(self) -> None:
        values = self.__dict__
        values["training"] = True
        values["_kinds"] = {}
        values["_hooks"] = None

    forward: Callable[..., Any] = _no_forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return ``forward(*args, **kwargs)``, between the hooks if there are any."""
        try:
            if self._hooks is None and not GLOBAL_HOOKS.any:
                return self.forward(*args, **kwargs)
            return call_with_hooks(self, self.forward, args, kwargs)
        except (LocatedError, AttributeError) as error:
            note_failure(error, self, args)
            raise

    # --- members ---

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            kind = member_kind(value)
        else:
            kind = MODULE if isinstance(value, Module) else None
        kinds = self.__dict__.get("_kinds")
        if kind is None and (kinds is None or name not in kinds):
            object.__setattr__(self, name, value)
            return
        if kinds is None:
            raise not_initialized(self, f"cannot assign {kind} before Module.__init__() call")
        if kind is None:
            check_member(name, kinds[name], value)
        else:
            if REGISTRATION_HOOKS.any:
                value = shown_to_hooks(self, kind, name, value)
            if kinds.get(name) != kind:
                kinds.pop(name, None)
                kinds[name] = kind
        self.__dict__[name] = value

    if not TYPE_CHECKING:
        # For code that calls it by name. It makes reading an attribute 7 ns slower, of 33.
        def __getattr__(self, name):
            return object.__getattribute__(self, name)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self._kinds.pop(name, None)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _register(self, kind: str, name: str, value: Any) -> None:
        if "_kinds" not in self.__dict__:
            raise not_initialized(self, f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name!r}')
        if not name:
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if self._kinds.get(name) != kind and hasattr(self, name):
            raise KeyError(f"attribute {name!r} already exists: take another name, or delete it")
        if REGISTRATION_HOOKS.any:
            value = shown_to_hooks(self, kind, name, value)
        self.__dict__[name] = value
        self._kinds[name] = kind

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None declares one that this module goes without."""
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentTypeError(
                f"cannot assign {type(param).__name__!r} object to parameter {name!r} "
                "(nn.Parameter or None required)"
            )
        if param is not None and not param.is_leaf:
            raise ArgumentError(
                f"Cannot assign non-leaf Tensor to parameter {name!r}. Model parameters must be "
                "created explicitly: compute it in forward() instead"
            )
        self._register(PARAMETER, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: a tensor that is state but no parameter, such as a running mean.

        Parameters
        ----------
        name : str
            The attribute.
        tensor : Tensor or None
            The values; None declares a buffer that this module goes without.
        persistent : bool, default True
            Whether it is part of the state dict.
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentTypeError(
                f"cannot assign {type(tensor).__name__!r} object to buffer {name!r} (Tensor or "
                "None required)"
            )
        if self.__dict__.get("_kinds", {}).get(name) in BUFFERS:
            self._kinds.pop(name)
            del self.__dict__[name]
        self._register(BUFFER if persistent else TRANSIENT, name, tensor)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a submodule; None declares one that this module goes without."""
        if isinstance(module, type) and issubclass(module, Module):
            raise ArgumentTypeError(
                f"submodule {name!r} is the class {module.__name__}: make one of it, "
                f"{module.__name__}(...)"
            )
        if module is not None and not isinstance(module, Module):
            raise ArgumentTypeError(
                f"{type(module).__name__} is not a Module subclass, as submodule {name!r} must be "
                "(or None). The modules of a list are given one by one, as by f(*modules)"
            )
        self._register(MODULE, name, module)

    add_module = register_module

    @property
    def _parameters(self) -> Members:
        return Members(self, PARAMETER)

    @property
    def _buffers(self) -> Members:
        return Members(self, *BUFFERS)

    @property
    def _modules(self) -> Members:
        return Members(self, MODULE)

    def _of(self, *kinds: str) -> list[tuple[str, Any]]:
        """Return the members of some kinds that are not None, with their names."""
        values = self.__dict__
        pairs = [(name, values[name]) for name, kind in self._kinds.items() if kind in kinds]
        return [(name, value) for name, value in pairs if value is not None]

    # --- walks ---

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield this module and all below it with their dotted names, parents first."""
        seen: set[Any] = set() if memo is None else memo
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:
            path, module = stack.pop()
            if module in seen:
                continue
            if remove_duplicate:
                seen.add(module)
            yield path, module
            dot = path + "." if path else ""
            stack += [(dot + name, child) for name, child in reversed(module._of(MODULE))]

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all below it, each once or as often as it is a member."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the submodules of this module itself with their names, each once."""
        seen = set()
        for name, child in self._of(MODULE):
            if child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator[Module]:
        """Yield the submodules of this module itself."""
        for _, child in self.named_children():
            yield child

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules: Iterable[tuple[str, Module]] = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            dot = path + "." if path else ""
            for name, value in get_members_fn(module):
                if value is not None and id(value) not in seen:
                    if remove_duplicate:
                        seen.add(id(value))
                    yield dot + name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the parameters with their dotted names: a shared one once, unless asked for."""
        return self._named_members(lambda m: m._of(PARAMETER), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, for an optimiser.

        Examples
        --------
        >>> import chainrule as cr
        >>> [parameter.shape for parameter in cr.nn.Linear(3, 2).parameters()]
        [(2, 3), (2,)]
        """
        for _, value in self.named_parameters(recurse=recurse):
            yield value

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers with their dotted names."""
        return self._named_members(lambda m: m._of(*BUFFERS), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers."""
        for _, value in self.named_buffers(recurse=recurse):
            yield value

    def get_submodule(self, target: str) -> Module:
        """Return the module of a dotted name; this one for the empty name."""
        module = self
        for name in target.split(".") if target else ():
            found = getattr(module, name, None)
            if not isinstance(found, Module):
                what = "is not an nn.Module" if hasattr(module, name) else "does not exist"
                raise AttributeError(
                    f"{type(module).__name__} has no submodule {name!r} (of {target!r}): the "
                    f"attribute {what}. Its submodules are {list(module._modules)}"
                )
            module = found
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the module of a dotted name; unless `strict`, its last part may be new."""
        if not target:
            raise ArgumentError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if strict:
            owner.get_submodule(name)
        if not isinstance(module, Module):
            raise ArgumentError(f"{module!r} is not an nn.Module")
        setattr(owner, name, module)

    def _get(self, target: str, kinds: tuple[str, ...], title: str) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if owner._kinds.get(name) not in kinds:
            names = [found for found, _ in owner._of(*kinds)]
            raise AttributeError(f"{type(owner).__name__} has no {title} {name!r}: it has {names}")
        return owner.__dict__[name]

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter of a dotted name."""
        found: Parameter = self._get(target, (PARAMETER,), "parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer of a dotted name."""
        found: Tensor = self._get(target, BUFFERS, "buffer")
        return found

    # --- modes, dtypes and devices ---

    def train(self: M, mode: bool = True) -> M:
        """Put this module and all below it into training mode, or out of it; return it."""
        if not isinstance(mode, bool):
            raise ArgumentError(f"training mode is expected to be boolean, got {mode!r}")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: M) -> M:
        """Put this module and all below it into evaluation mode; return it."""
        return self.train(False)

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call a function with every module of the tree, children first; return this module.

        Examples
        --------
        >>> from chainrule import nn
        >>> def init(module):
        ...     if isinstance(module, nn.Linear):
        ...         nn.init.ones_(module.weight)
        >>> nn.Sequential(nn.Linear(2, 1)).apply(init)[0].weight.tolist()
        [[1.0, 1.0]]
        """
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Start or stop recording operations on the parameters; return this module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters: to None, or in place to zeros."""
        for parameter in self.parameters():
            grad = parameter._grad
            if grad is not None and not set_to_none:
                with no_grad():
                    grad.detach_().zero_()
            else:
                parameter._grad = None

    def _apply(self: M, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> M:
        """Convert all parameters, their gradients and buffers; parameters stay the same objects."""
        for module in self.modules() if recurse else (self,):
            for _, tensor in module._of(PARAMETER, *BUFFERS):
                if is_uninitialized(tensor):
                    tensor.convert(fn)
            for _, parameter in module._of(PARAMETER):
                if is_uninitialized(parameter):
                    continue
                with no_grad():
                    values = fn(parameter)._array
                    grad = None if parameter._grad is None else fn(parameter._grad)
                parameter._array, parameter._grad = values, grad
            for name, buffer in module._of(*BUFFERS):
                if not is_uninitialized(buffer):
                    with no_grad():
                        module.__dict__[name] = fn(buffer)
        return self

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Convert parameters and buffers to a dtype or move them to a device; return this module.

        Parameters
        ----------
        *args, **kwargs
            As for `Tensor.to`: a device, a dtype, both, or a tensor that has them. The dtype is
            that of floating and complex tensors; those of integers keep theirs.

        Examples
        --------
        >>> import chainrule as cr
        >>> cr.nn.Linear(2, 2).to(cr.float64).weight.dtype
        dtype('float64')
        """
        device, dtype = destination(*args, **kwargs)
        if dtype is not None and dtype.kind not in "fc":
            raise ArgumentTypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"{dtype}"
            )

        def convert(tensor: Tensor) -> Tensor:
            floating = tensor.dtype.kind in "fc"
            moved = tensor if device is None else tensor.to(device)
            return moved.to(dtype) if dtype is not None and floating else moved

        return self._apply(convert)

    def to_empty(self: M, *, device: DeviceLike, recurse: bool = True) -> M:
        """Move parameters and buffers to a device; return this module. Values stay as they are."""
        return self._apply(lambda tensor: tensor.to(device), recurse)

    def type(self: M, dst_type: DTypeLike) -> M:
        """Convert all parameters and buffers to a dtype, integers too; return this module."""
        return self._apply(lambda tensor: tensor.to(dtype_of(dst_type)))

    def float(self: M) -> M:
        """Convert floating parameters and buffers to float32; return this module."""
        return self.to("float32")

    def double(self: M) -> M:
        """Convert floating parameters and buffers to float64; return this module."""
        return self.to("float64")

    def half(self: M) -> M:
        """Convert floating parameters and buffers to float16; return this module."""
        return self.to("float16")

    def cpu(self: M) -> M:
        """Move parameters and buffers to the CPU; return this module."""
        return self.to(device="cpu")

    def cuda(self: M, device: DeviceLike | int = None) -> M:
        """Move parameters and buffers to a GPU; return this module."""
        where = f"cuda:{device}" if isinstance(device, int) else device or "cuda"
        return self.to(device=where)

    def share_memory(self: M) -> M:
        """Move parameters and buffers to memory that forked processes share; return this module."""
        return self._apply(lambda tensor: tensor.share_memory_())

    # --- state ---

    def state_dict(
        self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return all parameters and persistent buffers by their dotted names.

        Parameters
        ----------
        destination : dict, optional
            Is updated and returned, instead of a new one.
        prefix : str, default ""
            Is put before all names.
        keep_vars : bool, default False
            Return the parameters themselves, not detached from the graph.

        Returns
        -------
        dict
            The tensors share the memory of the module: ``copy.deepcopy`` makes a snapshot. Its
            attribute `_metadata` has the `_version` of each module.

        Examples
        --------
        >>> from chainrule import nn
        >>> list(nn.Sequential(nn.Linear(2, 1)).state_dict())
        ['0.weight', '0.bias']
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        return save_state(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy the values of a state dict into the parameters and buffers.

        Parameters
        ----------
        state_dict : dict
            Tensors or arrays by dotted names; tensors of PyTorch too.
        strict : bool, default True
            Raise if names are missing or too many.
        assign : bool, default False
            Take the tensors of the state dict, with their dtypes, instead of copying their values.

        Returns
        -------
        named tuple
            ``missing_keys`` and ``unexpected_keys``.

        Raises
        ------
        ArgumentError
            If a shape differs or, with `strict`, names do: it lists them all, and nothing has been
            loaded.

        Examples
        --------
        >>> from chainrule import nn
        >>> nn.Linear(2, 1).load_state_dict(nn.Linear(2, 1).state_dict())
        <All keys matched successfully>
        """
        return load_state(self, state_dict, strict, assign)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, value in list(vars(cls).items()):
            # Functions of PyTorch that are built in, as in `act = torch.tanh`, are no methods.
            if isinstance(value, FunctionType):
                owner = value.__globals__.get("__name__", "")
                if owner.startswith(_OPERATIONS):
                    setattr(cls, name, staticmethod(value))

    # PyTorch's names of what a subclass may override.
    _version = 1
    _members_since: ClassVar[Mapping[str, int]] = {}
    """The version of state dicts from which a member is in them."""
    _save_to_state_dict = save_members
    _load_from_state_dict = load_members

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: calls of modules are compiled within a function, as by `chainrule.compile`.

        Arguments are those of PyTorch's method, whose calls give the same numbers as before.
        """

    def _tensors(self) -> dict[str, Any]:
        # Leaves of this module have no history; within a transform, its tensors keep theirs.
        named = self.named_parameters()
        return {name: p.detach() if is_parameter(p) else p for name, p in named}

    def _replaced(
        self,
        tensors: Mapping[str, Any],
        function: Callable[..., Any],
        *args: Any,
        tie_weights: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Return what a function returns, called while members are replaced by other tensors."""
        places: dict[str, list[tuple[dict[str, Any], str]]] = {}
        same: dict[int, list[tuple[dict[str, Any], str]]] = {}
        for path, module in self.named_modules(remove_duplicate=False):
            dot = path + "." if path else ""
            for name, value in module._of(PARAMETER, *BUFFERS):
                place = module.__dict__, name
                shared = same.setdefault(id(value), [])
                shared.append(place)
                places[dot + name] = shared if tie_weights else [place]
        before = [(owner, name, owner[name]) for key in tensors for owner, name in places[key]]

        def replace_and_call() -> Any:
            for key, value in tensors.items():
                for owner, name in places[key]:
                    owner[name] = value
            return function(*args, **kwargs)

        def restore() -> None:
            for owner, name, value in before:
                owner[name] = value

        return call_then(restore, replace_and_call)

    # --- printing ---

    def extra_repr(self) -> str:
        """Return what stands between the parentheses of the module's own line when printed."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        values = self.__dict__
        children = [
            _indented(f"({name}): {values[name]!r}")
            for name, kind in self._kinds.items()
            if kind == MODULE
        ]
        lines = [*extra.split("\n"), *children] if extra else children
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return "\n  ".join([f"{self._get_name()}(", *lines]) + "\n)"

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if not name[0].isdigit()]


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
