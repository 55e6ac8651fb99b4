"""Parameters and values of every distribution, for both libraries: a table."""

from __future__ import annotations

from typing import Any

import numpy as np

FACTOR = [[1.0, 0.0], [0.5, 2.0]]
COVARIANCE = [[2.0, 0.3], [0.3, 1.0]]
WEIGHTS = [[0.25, 0.5, 0.25], [0.1, 0.4, 0.5]]
LOGITS = [[0.5, -1.0, 2.0], [0.0, 0.0, -3.0]]
POSITIVE = [[0.2, 1.7], [0.3, 9.0], [4.0, 0.01]]
REAL = [[0.25, 3.0], [1.0, -8.0], [0.6, -1.1]]
UNIT = [[0.25, 0.999], [0.5, 0.75], [1e-3, 0.4]]
SCALE = {"loc": [0.5, -1.0], "scale": [0.5, 2.0]}
TEMPERATURE = np.array(0.7)
SHARES = [[0.2, 0.3, 0.5], [0.7, 0.2, 0.1], [0.01, 0.01, 0.98]]
CONCENTRATIONS = {"concentration1": [0.7, 3.0], "concentration0": [2.5, 4.0]}

CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "Bernoulli": ("Bernoulli", {"probs": [0.25, 0.6]}, [[1.0, 0.0], [0.0, 1.0]]),
    "Bernoulli of logits": ("Bernoulli", {"logits": [5.0, -0.5]}, [0.0, 1.0]),
    "Beta": ("Beta", CONCENTRATIONS, UNIT),
    "Binomial": ("Binomial", {"total_count": 5, "probs": [0.3, 0.9]}, [[0.0, 5.0], [2.0, 3.0]]),
    "Binomial of logits": (
        "Binomial",
        {"total_count": np.array([5.0, 3.0]), "logits": [0.3, -4.0]},
        [2.0, 0.0],
    ),
    "Categorical": ("Categorical", {"probs": WEIGHTS}, np.array([[1, 2], [0, 0], [2, 1]])),
    "Categorical of logits": ("Categorical", {"logits": LOGITS}, np.array([1, 2])),
    "Cauchy": ("Cauchy", SCALE, REAL),
    "Chi2": ("Chi2", {"df": [1.5, 7.0]}, POSITIVE),
    "ContinuousBernoulli": ("ContinuousBernoulli", {"probs": [0.1, 0.8]}, UNIT),
    "ContinuousBernoulli of logits": ("ContinuousBernoulli", {"logits": [2.0, -0.5]}, UNIT),
    "Dirichlet": ("Dirichlet", {"concentration": [[0.7, 2.0, 3.0], [3.0, 1.5, 5.0]]}, None),
    "Exponential": ("Exponential", {"rate": [0.5, 3.0]}, POSITIVE),
    "FisherSnedecor": ("FisherSnedecor", {"df1": [3.0, 5.0], "df2": [5.0, 9.0]}, POSITIVE),
    "Gamma": ("Gamma", {"concentration": [0.5, 4.0], "rate": [2.0, 0.5]}, POSITIVE),
    "GeneralizedPareto": (
        "GeneralizedPareto",
        {"loc": [0.0, -1.0], "scale": [1.0, 2.0], "concentration": [0.4, -0.05]},
        [[0.25, 3.0], [1.0, -0.5]],
    ),
    "Geometric": ("Geometric", {"probs": [0.2, 0.7]}, [[0.0, 3.0], [2.0, 1.0]]),
    "Geometric of logits": ("Geometric", {"logits": [0.2, -2.0]}, [0.0, 3.0]),
    "Gumbel": ("Gumbel", SCALE, REAL),
    "HalfCauchy": ("HalfCauchy", {"scale": [0.5, 2.0]}, POSITIVE),
    "HalfNormal": ("HalfNormal", {"scale": [0.5, 2.0]}, POSITIVE),
    "InverseGamma": (
        "InverseGamma",
        {"concentration": [2.5, 4.0], "rate": [2.0, 0.5]},
        POSITIVE,
    ),
    "Kumaraswamy": (
        "Kumaraswamy",
        {"concentration1": [1.7, 3.0], "concentration0": [2.5, 4.0]},
        [[0.25, 0.9], [0.5, 0.75]],
    ),
    "LKJCholesky": (
        "LKJCholesky",
        {"dim": 3, "concentration": [0.5, 2.0]},
        [[[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [-0.48, 0.36, 0.8]]],
    ),
    "Laplace": ("Laplace", SCALE, REAL),
    "LogNormal": ("LogNormal", SCALE, POSITIVE),
    "LogisticNormal": (
        "LogisticNormal",
        {"loc": [[0.5, -1.0], [0.0, 2.0]], "scale": [[0.5, 2.0], [1.0, 0.7]]},
        [[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]],
    ),
    "LowRankMultivariateNormal": (
        "LowRankMultivariateNormal",
        {"loc": [[0.5, -1.0], [0.0, 2.0]], "cov_factor": [[1.0], [0.5]], "cov_diag": [0.5, 2.0]},
        [[0.1, 0.2], [3.0, -1.0]],
    ),
    "Multinomial": (
        "Multinomial",
        {"total_count": 4, "probs": WEIGHTS},
        [[2.0, 1.0, 1.0], [0.0, 4.0, 0.0]],
    ),
    "MultivariateNormal": (
        "MultivariateNormal",
        {"loc": [[0.5, -1.0], [0.0, 2.0]], "covariance_matrix": COVARIANCE},
        [[[0.1, 0.2], [3.0, -1.0]]] * 2,
    ),
    "MultivariateNormal by precision": (
        "MultivariateNormal",
        {"loc": [0.5, -1.0], "precision_matrix": [COVARIANCE, [[1.0, -0.5], [-0.5, 3.0]]]},
        [[0.1, 0.2], [3.0, -1.0]],
    ),
    "MultivariateNormal by factor": (
        "MultivariateNormal",
        {"loc": [0.5, -1.0], "scale_tril": FACTOR},
        [[0.1, 0.2], [3.0, -1.0]],
    ),
    "NegativeBinomial": (
        "NegativeBinomial",
        {"total_count": [2.0, 3.5], "probs": [0.3, 0.9]},
        [[0.0, 5.0], [2.0, 3.0]],
    ),
    "NegativeBinomial of logits": (
        "NegativeBinomial",
        {"total_count": [2.0, 3.5], "logits": [0.3, -2.0]},
        [[0.0, 5.0], [2.0, 3.0]],
    ),
    "Normal": ("Normal", SCALE, REAL),
    "OneHotCategorical": ("OneHotCategorical", {"probs": WEIGHTS}, [[0.0, 1.0, 0.0]] * 2),
    "OneHotCategoricalStraightThrough": (
        "OneHotCategoricalStraightThrough",
        {"logits": LOGITS},
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
    ),
    "Pareto": ("Pareto", {"scale": [0.5, 2.0], "alpha": [3.0, 2.5]}, [[0.7, 9.0], [0.5, 2.5]]),
    "Poisson": ("Poisson", {"rate": [0.5, 9.0]}, [[0.0, 5.0], [2.0, 12.0]]),
    "RelaxedBernoulli": (
        "RelaxedBernoulli",
        {"temperature": TEMPERATURE, "probs": [0.2, 0.6]},
        UNIT,
    ),
    "RelaxedOneHotCategorical": (
        "RelaxedOneHotCategorical",
        {"temperature": TEMPERATURE, "logits": LOGITS},
        [[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]],
    ),
    "StudentT": ("StudentT", {"df": [2.5, 9.0], **SCALE}, REAL),
    "Uniform": ("Uniform", {"low": [0.0, -1.0], "high": [0.5, 2.0]}, [[0.25, 1.5], [0.1, -0.5]]),
    "VonMises": ("VonMises", {"loc": [0.5, -1.0], "concentration": [0.5, 8.0]}, REAL),
    "Weibull": ("Weibull", {"scale": [0.5, 2.0], "concentration": [0.7, 3.0]}, POSITIVE),
    "Wishart": (
        "Wishart",
        {"df": [3.0, 5.5], "covariance_matrix": COVARIANCE},
        [[[1.0, 0.2], [0.2, 3.0]], [[5.0, -1.0], [-1.0, 0.5]]],
    ),
    "Wishart by precision": (
        "Wishart",
        {"df": [3.0], "precision_matrix": [COVARIANCE]},
        [[[1.0, 0.2], [0.2, 3.0]]],
    ),
    "Wishart by factor": (
        "Wishart",
        {"df": [3.0, 4.0], "scale_tril": [FACTOR, FACTOR]},
        [[1.0, 0.2], [0.2, 3.0]],
    ),
}
"""By title: the name, the parameters (lists become tensors), and values."""
CASES["Dirichlet"] = (*CASES["Dirichlet"][:2], [[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]])


def parameters_of(m: Any, title: str, dtype: str = "float64", factor: float = 1.0) -> Any:
    """Return the parameters as tensors that require grad, and the others, in a library."""
    tensors, others = {}, {}
    for name, values in CASES[title][1].items():
        if isinstance(values, list):
            array = np.array(values, dtype)
            array = array * factor if name not in ("low", "loc") else array - 0.1 * (factor != 1)
            tensors[name] = m.tensor(array).requires_grad_()
        elif isinstance(values, np.ndarray):
            others[name] = m.tensor(values.astype(dtype))
        else:
            others[name] = values
    return tensors, others


def make(m: Any, title: str, dtype: str = "float64", factor: float = 1.0) -> tuple[Any, Any]:
    """Return a distribution of a library, and the tensors that it is made of."""
    tensors, others = parameters_of(m, title, dtype, factor)
    return getattr(m.distributions, CASES[title][0])(**others, **tensors), tensors


def values_of(m: Any, title: str, dtype: str = "float64") -> Any:
    """Return values, which require grad unless they are numbers of categories."""
    values = CASES[title][2]
    if isinstance(values, np.ndarray):
        return m.tensor(values)
    return m.tensor(np.array(values, dtype)).requires_grad_()
