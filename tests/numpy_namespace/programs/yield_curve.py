import numpy as np


def bootstrap(par_rates, freq=2):
    """Discount factors from par swap rates at semi-annual tenors."""
    n = len(par_rates)
    df = np.empty(n)
    annuity = 0.0
    for i in range(n):
        c = par_rates[i] / freq
        df[i] = (1.0 - c * annuity) / (1.0 + c)
        annuity += df[i]
    return df


def program(quotes, strike):
    # quotes at 1y, 2y, 3y, 5y -> par curve on a half-year grid
    quoted = np.array([1.0, 2.0, 3.0, 5.0])
    tenors = np.arange(0.5, 5.01, 0.5)
    par = np.zeros(tenors.size)
    for k, t in enumerate(tenors):
        if t <= quoted[0]:
            par[k] = quotes[0]
            continue
        j = np.searchsorted(quoted, t) - 1
        w = (t - quoted[j]) / (quoted[j + 1] - quoted[j])
        par[k] = (1 - w) * quotes[j] + w * quotes[j + 1]

    df = bootstrap(par)
    zero = -np.log(df) / tenors
    fwd = np.zeros_like(df)
    fwd[0] = 2 * (1 / df[0] - 1)
    fwd[1:] = 2 * (df[:-1] / df[1:] - 1)

    # payer swap starting in one year, with a step-up notional
    notional = np.full(tenors.size, 100.0)
    notional[:2] = 0.0
    notional[6:] *= 1.5
    cash = np.multiply(notional, fwd - strike)
    cash *= 0.5
    pv = cash.dot(df)
    return pv + 10.0 * zero.max()


ARGUMENTS = (np.array([0.021, 0.024, 0.0285, 0.033]), 0.03)
