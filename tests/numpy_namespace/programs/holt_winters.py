import numpy as np


class HoltWinters:
    """Additive triple exponential smoothing, period m."""

    def __init__(self, alpha, beta, gamma, m):
        self.alpha, self.beta, self.gamma, self.m = alpha, beta, gamma, m
        self.level = self.trend = None
        self.season = np.zeros(m)

    def initialise(self, y):
        m = self.m
        first, second = y[:m], y[m:2 * m]
        self.level = first.mean()
        self.trend = (second.mean() - first.mean()) / m
        self.season[:] = first - self.level

    def update(self, t, obs):
        i = t % self.m
        pred = self.level + self.trend + self.season[i]
        last = self.level
        self.level = self.alpha * (obs - self.season[i]) + (1 - self.alpha) * (last + self.trend)
        self.trend = self.beta * (self.level - last) + (1 - self.beta) * self.trend
        self.season[i] *= 1 - self.gamma
        self.season[i] += self.gamma * (obs - self.level)
        return pred


def program(y, coef):
    alpha, beta, gamma = 1.0 / (1.0 + np.exp(-coef))
    hw = HoltWinters(alpha, beta, gamma, 4)
    hw.initialise(y)
    errors = []
    # running mean/variance of the errors by Welford
    count, mean, m2 = 0, 0.0, 0.0
    for t in range(4, len(y)):
        e = y[t] - hw.update(t, y[t])
        errors.append(e)
        count += 1
        d = e - mean
        mean += d / count
        m2 += d * (e - mean)
    errors = np.asarray(errors)
    ranked = np.abs(errors)
    ranked.sort()
    trimmed = ranked[2:-2].mean()
    forecast = hw.level + hw.trend * np.arange(1, 5) + hw.season
    return m2 / (count - 1) + mean ** 2 + trimmed + 0.01 * forecast.sum()


ARGUMENTS = (
    np.array([10.0, 14.1, 8.2, 12.4, 11.3, 15.0, 9.1, 13.9, 12.2, 16.4, 10.0, 14.3, 13.5, 17.1, 11.4, 15.2]),
    np.array([-0.4, -1.5, -0.8]),
)
