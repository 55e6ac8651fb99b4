import numpy as np

g = 9.81


class ShallowWater:
    def __init__(self, n, depth):
        self.h = np.ones((n, n)) * depth
        self.u = np.zeros((n + 1, n))
        self.v = np.zeros((n, n + 1))
        self.dx = 1.0
        self.dt = 0.08

    def drop(self, i, j, height, width):
        n = self.h.shape[0]
        y, x = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
        self.h += height * np.exp(-((x - i) ** 2 + (y - j) ** 2) / width ** 2)

    def step(self):
        h, u, v = self.h, self.u, self.v
        c = self.dt / self.dx
        u[1:-1] -= c * g * (h[1:] - h[:-1])
        v[:, 1:-1] -= c * g * (h[:, 1:] - h[:, :-1])
        u *= 0.999
        v *= 0.999
        hu = np.zeros_like(u)
        hu[1:-1] = u[1:-1] * 0.5 * (h[1:] + h[:-1])
        hv = np.zeros_like(v)
        hv[:, 1:-1] = v[:, 1:-1] * 0.5 * (h[:, 1:] + h[:, :-1])
        h -= c * (np.diff(hu, axis=0) + np.diff(hv, axis=1))

    def energy(self):
        kin = 0.5 * ((self.u ** 2).mean() + (self.v ** 2).mean())
        return kin + 0.5 * g * self.h.std() ** 2


def program(depth, height, width):
    sim = ShallowWater(10, depth)
    sim.drop(3, 4, height, width)
    gauges = []
    for k in range(12):
        sim.step()
        gauges.append(sim.h[6:9, 6].copy())
    gauges = np.stack(gauges, axis=1)
    gauge = gauges.mean(0)
    return sim.energy() + np.sum((gauge - depth) ** 2)


ARGUMENTS = (1.2, 0.3, 1.7)
