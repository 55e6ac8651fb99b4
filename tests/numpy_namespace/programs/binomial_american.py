import numpy as np


def program(S0, vol, rate):
    """American put, CRR tree, plus delta/gamma penalty read off the first levels."""
    K, T, n = 100.0, 1.0, 24
    dt = T / n
    up = np.exp(vol * np.sqrt(dt))
    down = 1.0 / up
    p = (np.exp(rate * dt) - down) / (up - down)
    disc = np.exp(-rate * dt)

    S = np.empty(n + 1)
    S[0] = S0 * down ** n
    for i in range(1, n + 1):
        S[i] = S[i - 1] * up * up

    value = np.maximum(K - S, 0.0)
    level2 = np.zeros(3)
    for step in range(n, 0, -1):
        S = S[:-1] * up
        cont = disc * (p * value[1:step + 1] + (1 - p) * value[:step])
        value[:step] = cont
        exercise = K - S
        better = exercise > cont
        value[:step][better] = exercise[better]
        if step - 1 == 2:
            level2[:] = value[:3]
    su, sd = S0 * up * up, S0 * down * down
    delta_up = (level2[2] - level2[1]) / (su - S0)
    delta_dn = (level2[1] - level2[0]) / (S0 - sd)
    gamma = (delta_up - delta_dn) / (0.5 * (su - sd))
    return value[0] + 5.0 * gamma


ARGUMENTS = (101.3, 0.28, 0.045)
