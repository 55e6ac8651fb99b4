"""Special functions, under PyTorch's names in `torch.special` and some of `scipy.special`.

>>> import chainrule as cr
>>> cr.special.ndtr(cr.tensor([0.0]))
tensor([0.5000])
"""

import typing as _typing

from chainrule.ops import bessel as _bessel
from chainrule.ops import probability as _probability
from chainrule.ops.bessel import *
from chainrule.ops.binary import xlogy as xlogy
from chainrule.ops.blends import exp2 as exp2
from chainrule.ops.elementary import expm1 as expm1
from chainrule.ops.elementary import log1p as log1p
from chainrule.ops.elementary import sigmoid as _sigmoid
from chainrule.ops.kinks import round as round
from chainrule.ops.probability import *
from chainrule.ops.special import digamma as digamma
from chainrule.ops.special import erf as erf
from chainrule.ops.special import erfc as erfc
from chainrule.ops.special import erfinv as erfinv
from chainrule.ops.special import i0 as i0
from chainrule.ops.special import igamma as _igamma
from chainrule.ops.special import igammac as _igammac
from chainrule.ops.special import lgamma as _lgamma
from chainrule.ops.special import logit as logit
from chainrule.ops.special import mvlgamma as _mvlgamma
from chainrule.ops.special import polygamma as polygamma
from chainrule.ops.special import sinc as sinc
from chainrule.ops.statistics import log_softmax as log_softmax
from chainrule.ops.statistics import logsumexp as logsumexp
from chainrule.ops.statistics import softmax as softmax

expit = _sigmoid
gammainc = _igamma
gammaincc = _igammac
gammaln = _lgamma
multigammaln = _mvlgamma
psi = digamma

if not _typing.TYPE_CHECKING:  # as in `ops`
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
    __all__ += _bessel.__all__
    __all__ += _probability.__all__
