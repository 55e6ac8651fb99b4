"""Special functions, under the names of `torch.special` and some of `scipy.special`.

>>> import chainrule as cr
>>> cr.special.ndtr(cr.tensor([0.0]))
tensor([0.5000])
"""

from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing as _missing
from chainrule.ops.binary import exp2, xlogy
from chainrule.ops.elementary import expm1, log1p, round
from chainrule.ops.elementary import sigmoid as expit
from chainrule.ops.orthogonal_polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)
from chainrule.ops.special import (
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    beta,
    betainc,
    betaln,
    dawsn,
    digamma,
    entr,
    erf,
    erfc,
    erfcx,
    erfi,
    erfinv,
    exp1,
    expi,
    gamma,
    i0,
    i0e,
    i1,
    i1e,
    kl_div,
    log_expit,
    log_ndtr,
    logit,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    ndtr,
    ndtri,
    polygamma,
    rel_entr,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    sinc,
    spherical_bessel_j0,
    xlog1py,
    zeta,
)
from chainrule.ops.special import igamma as gammainc
from chainrule.ops.special import igammac as gammaincc
from chainrule.ops.special import lgamma as gammaln
from chainrule.ops.special import mvlgamma as multigammaln
from chainrule.ops.statistics import log_softmax, logsumexp, softmax
from chainrule.out_argument import give_out as _give_out

__all__ = [
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
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
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "spherical_bessel_j0",
    "i0e",
    "i1",
    "i1e",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "erfcx",
    "erfi",
    "dawsn",
    "ndtr",
    "ndtri",
    "log_ndtr",
    "log_expit",
    "entr",
    "rel_entr",
    "kl_div",
    "xlog1py",
    "gamma",
    "beta",
    "betaln",
    "betainc",
    "zeta",
    "expi",
    "exp1",
]

psi = digamma

_give_out(globals(), __name__)

if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise _missing(__name__, name)
