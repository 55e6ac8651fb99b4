"""Probability distributions under the names of `torch.distributions`.

>>> import chainrule as cr
>>> from chainrule.distributions import Independent, Normal, kl_divergence
>>> q = Independent(Normal(cr.ones(3), 1.0), 1)
>>> q.rsample().shape, kl_divergence(q, Independent(Normal(cr.zeros(3), 1.0), 1))
((3,), tensor(1.5000))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainrule.distributions import constraints as constraints
from chainrule.distributions import kl as kl
from chainrule.distributions import transforms as transforms
from chainrule.distributions.categorical import (
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from chainrule.distributions.composite import (
    Independent,
    MixtureSameFamily,
    TransformedDistribution,
)
from chainrule.distributions.constraint_registry import biject_to, transform_to
from chainrule.distributions.counts import (
    Bernoulli,
    Binomial,
    Geometric,
    NegativeBinomial,
    Poisson,
)
from chainrule.distributions.distribution import Distribution, ExponentialFamily
from chainrule.distributions.kl import kl_divergence, register_kl
from chainrule.distributions.location_scale import (
    Cauchy,
    Gumbel,
    Laplace,
    Normal,
    StudentT,
    Uniform,
    VonMises,
)
from chainrule.distributions.multivariate import (
    LKJCholesky,
    LowRankMultivariateNormal,
    MultivariateNormal,
    Wishart,
)
from chainrule.distributions.positive import (
    Chi2,
    Exponential,
    FisherSnedecor,
    Gamma,
    GeneralizedPareto,
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    LogNormal,
    Pareto,
    Weibull,
)
from chainrule.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from chainrule.distributions.unit_interval import (
    Beta,
    ContinuousBernoulli,
    Dirichlet,
    Kumaraswamy,
    LogisticNormal,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from chainrule.missing_names import submodule

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        return submodule(__name__, name)
