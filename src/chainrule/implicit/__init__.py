"""Solutions of equations, differentiated by the implicit function theorem."""

from chainrule.implicit.solutions import implicit_function

__all__ = ["implicit_function"]
