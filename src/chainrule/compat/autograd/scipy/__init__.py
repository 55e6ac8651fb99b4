"""SciPy's functions that HIPS autograd differentiates (`autograd.scipy`)."""

from chainrule.compat.autograd.scipy import integrate as integrate
from chainrule.compat.autograd.scipy import linalg as linalg
from chainrule.compat.autograd.scipy import signal as signal
from chainrule.compat.autograd.scipy import special as special
from chainrule.compat.autograd.scipy import stats as stats
