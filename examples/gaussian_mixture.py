"""A Gaussian mixture on the iris data: maximum likelihood by gradients, then by Newton's method.

Three normal distributions are fitted to 150 flowers with four lengths each. The flowers' species
are not used; in the end, they are compared with the components.

It needs SciPy and scikit-learn. Run it: python3 examples/gaussian_mixture.py
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.datasets import load_iris

import chainrule as cr

COMPONENTS = 3
SMALLEST = 0.05  # cm: keeps a component from shrinking to one flower


def start(x, seed=4):
    """Return parameters: random flowers as means, the covariance of all flowers."""
    rng = np.random.default_rng(seed)
    scale = np.linalg.cholesky(np.linalg.inv(np.cov(x.T)))
    return {
        "weights": np.zeros(COMPONENTS),  # logarithms, up to a constant
        "means": x[rng.choice(len(x), COMPONENTS, replace=False)],
        "scales": np.tile(scale, (COMPONENTS, 1, 1)),
    }


def log_densities(p, x):
    """Return log(weight * density) of each flower (rows) under each component (columns).

    `scales` are lower triangular matrices S; the inverse of a covariance is S Sᵀ.
    """
    s = cr.tril(p["scales"])
    y = cr.einsum("ncd,cde->nce", x[:, None, :] - p["means"], s)
    log_det = cr.log(cr.abs(cr.diagonal(s, dim1=-2, dim2=-1))).sum(-1)
    constant = x.shape[1] / 2 * np.log(2 * np.pi)
    return cr.log_softmax(p["weights"], 0) - constant + log_det - (y**2).sum(-1) / 2


def loss(p, x):
    """Return the mean negative log-likelihood, with a penalty on components of no width."""
    s = cr.tril(p["scales"])
    return SMALLEST**2 / 2 * (s**2).sum() / len(x) - cr.logsumexp(log_densities(p, x), 1).mean()


def fit(x, seed=4):
    """Return the parameters, and a report of each stage."""
    vector, unravel = cr.tree.ravel(start(x, seed))

    def objective(v):
        return loss(unravel(v), x)

    value_and_grad = cr.value_and_grad(objective)
    report = []
    first = minimize(value_and_grad, vector, jac=True, method="L-BFGS-B", options={"maxiter": 60})
    report.append(("gradients (L-BFGS-B)", first))
    second = minimize(
        value_and_grad,
        first.x,
        jac=True,
        hess=cr.hessian(objective),
        method="trust-exact",
        options={"gtol": 1e-8},
    )
    report.append(("Newton's method (trust-exact)", second))
    return unravel(second.x), report


def main():
    iris = load_iris()
    x = iris.data
    p, report = fit(x)
    print("Negative log-likelihood of a flower, and the largest element of its gradient")
    for name, result in report:
        largest = abs(result.jac).max()
        print(f"  {name:30} {result.fun:.6f}  {largest:.1e}  ({result.nit} iterations)")

    members = softmax(log_densities(p, x).numpy(), axis=1).argmax(1)
    table = np.zeros((COMPONENTS, 3), int)
    np.add.at(table, (members, iris.target), 1)
    print("\nFlowers of each species in each component")
    print("  " + " ".join(f"{name:>12}" for name in iris.target_names))
    for row in table:
        print("  " + " ".join(f"{count:12}" for count in row))
    return report, table


if __name__ == "__main__":
    main()
