"""Neural networks: modules, functions in `functional`, initial values in `init`, and `utils`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chainrule.missing_names import submodule
from chainrule.nn import functional as functional
from chainrule.nn import utils as utils

if TYPE_CHECKING:
    from chainrule.nn import init as init
    from chainrule.nn import parallel as parallel
    from chainrule.nn.functional import attention as attention
    from chainrule.nn.modules import *
    from chainrule.nn.modules import Module as Module
    from chainrule.nn.parallel import DataParallel as DataParallel
    from chainrule.nn.parameter import Buffer as Buffer
    from chainrule.nn.parameter import Parameter as Parameter
    from chainrule.nn.parameter import UninitializedBuffer as UninitializedBuffer
    from chainrule.nn.parameter import UninitializedParameter as UninitializedParameter
else:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        """Import the layers when the first one is asked for: functions don't need them."""
        if name in ("attention", "init", "modules", "parallel", "parameter"):
            return import_module(f"{__name__}.{name}")
        if name == "__all__":
            modules = import_module(f"{__name__}.modules")
            return ["Parameter", "Buffer", "functional", "utils", "DataParallel", *modules.__all__]
        if name == "Parameter" or name[:1].isupper():
            layers = import_module(f"{__name__}.modules")
            parameters = import_module(f"{__name__}.parameter")
            parallel = import_module(f"{__name__}.parallel")
            for module in (layers, parameters, parallel):
                globals().update({each: getattr(module, each) for each in module.__all__})
            if name in globals():
                return globals()[name]
        return submodule(__name__, name)
