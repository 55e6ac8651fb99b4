"""Creation of tensors from data, shapes and ranges."""

from typing import TYPE_CHECKING

from chainrule.creation import data, filled, like, ranges, tensor_types, windows
from chainrule.creation.data import *
from chainrule.creation.filled import *
from chainrule.creation.like import *
from chainrule.creation.ranges import *
from chainrule.creation.tensor_types import *
from chainrule.creation.windows import *

if not TYPE_CHECKING:  # as in `ops`
    __all__ = [
        name
        for module in (data, filled, like, ranges, tensor_types, windows)
        for name in module.__all__
    ]
