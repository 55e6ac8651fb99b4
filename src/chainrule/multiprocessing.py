"""Python's `multiprocessing`, under the name that it has in PyTorch."""

from multiprocessing import *  # noqa: F403
from multiprocessing import __all__ as __all__
