"""Utilities of networks: gradient clipping, parametrised weights, pruning, packed sequences."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing
from chainrule.nn.utils.clip_grad import *
from chainrule.nn.utils.clip_grad import clip_grad_norm as clip_grad_norm
from chainrule.nn.utils.convert_parameters import *

if TYPE_CHECKING:
    from chainrule.nn.utils import parametrizations as parametrizations
    from chainrule.nn.utils import parametrize as parametrize
    from chainrule.nn.utils import prune as prune
    from chainrule.nn.utils import rnn as rnn
    from chainrule.nn.utils.fusion import *
    from chainrule.nn.utils.init import skip_init as skip_init
    from chainrule.nn.utils.norm_hooks import *
else:  # type checkers would accept every name
    # Names that are imported on first use, as layers are, and the modules that contain them.
    _LATER = {
        name: module
        for module, names in {
            "fusion": """
                fuse_conv_bn_eval fuse_conv_bn_weights
                fuse_linear_bn_eval fuse_linear_bn_weights""",
            "init": "skip_init",
            "norm_hooks": "remove_spectral_norm remove_weight_norm spectral_norm weight_norm",
        }.items()
        for name in names.split()
    }
    __all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]
    __all__ += ["parameters_to_vector", "vector_to_parameters", *_LATER]
    _MODULES = ["fusion", "init", "parametrizations", "parametrize", "prune", "rnn", "stateless"]

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _LATER:
            raise missing(__name__, name)
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
