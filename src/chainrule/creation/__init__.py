"""Creation of tensors from data, shapes and ranges."""

from typing import TYPE_CHECKING

from chainrule.creation import data, filled, like, ranges, windows
from chainrule.creation.data import *
from chainrule.creation.filled import *
from chainrule.creation.like import *
from chainrule.creation.ranges import *
from chainrule.creation.windows import *

if not TYPE_CHECKING:  # as in `ops`
    __all__ = [*data.__all__, *filled.__all__, *like.__all__, *ranges.__all__, *windows.__all__]
