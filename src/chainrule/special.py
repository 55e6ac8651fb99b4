"""Special functions, under PyTorch's names in `torch.special` and some of `scipy.special`.

>>> import chainrule as cr
>>> cr.special.ndtr(cr.tensor([0.0]))
tensor([0.5000])
"""

from chainrule.ops.bessel import *  # noqa: F403
from chainrule.ops.bessel import __all__ as _bessel
from chainrule.ops.blends import exp2
from chainrule.ops.exponential import expm1, log1p
from chainrule.ops.exponential import sigmoid as expit
from chainrule.ops.kinks import round
from chainrule.ops.pairs import xlogy
from chainrule.ops.probability import *  # noqa: F403
from chainrule.ops.probability import __all__ as _probability
from chainrule.ops.special import digamma, erf, erfc, erfinv, i0, logit, polygamma, sinc
from chainrule.ops.special import igamma as gammainc
from chainrule.ops.special import igammac as gammaincc
from chainrule.ops.special import lgamma as gammaln
from chainrule.ops.special import mvlgamma as multigammaln
from chainrule.ops.statistics import log_softmax, logsumexp, softmax

psi = digamma

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlogy",
]
__all__ += _bessel
__all__ += _probability
