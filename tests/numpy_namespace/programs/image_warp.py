import numpy as np


def bilinear(img, ys, xs):
    y0 = np.floor(ys).astype(int)
    x0 = np.floor(xs).astype(int)
    fy = ys - y0
    fx = xs - x0
    h, w = img.shape
    y0 = np.clip(y0, 0, h - 2)
    x0 = np.clip(x0, 0, w - 2)
    out = np.zeros(ys.shape)
    out += img[y0, x0] * (1 - fy) * (1 - fx)
    out += img[y0, x0 + 1] * (1 - fy) * fx
    out += img[y0 + 1, x0] * fy * (1 - fx)
    out += img[y0 + 1, x0 + 1] * fy * fx
    return out


def euler_matrix(ax, ay, az):
    R = np.eye(3)
    Rx, Ry, Rz = np.eye(3), np.eye(3), np.eye(3)
    Rx[1, 1] = Rx[2, 2] = np.cos(ax)
    Rx[1, 2] = -np.sin(ax)
    Rx[2, 1] = np.sin(ax)
    Ry[0, 0] = Ry[2, 2] = np.cos(ay)
    Ry[0, 2], Ry[2, 0] = np.sin(ay), -np.sin(ay)
    Rz[:2, :2] = [[np.cos(az), -np.sin(az)], [np.sin(az), np.cos(az)]]
    return R @ Rz @ Ry @ Rx


def program(img, angles):
    """Sum of squared differences of an image and its rotated (3-D, perspective) self."""
    h, w = img.shape
    grid = np.empty((3, h, w))
    grid[0], grid[1] = np.mgrid[:h, :w]
    grid[0] -= (h - 1) / 2
    grid[1] -= (w - 1) / 2
    grid[2] = 30.0
    rot = euler_matrix(*angles).dot(grid.reshape(3, -1)).reshape(grid.shape)
    rot[:2] *= 29.03 / rot[2]
    rot[0] += (h - 1) / 2 + 0.013
    rot[1] += (w - 1) / 2 - 0.017
    warped = bilinear(img, rot[0], rot[1])
    diff = warped - img
    edge = np.ones_like(img)
    edge[[0, -1], :] = 0.25
    edge[:, [0, -1]] *= 0.25
    return (edge * diff ** 2).sum() / edge.sum()


ARGUMENTS = (
    np.sin(0.9 * np.arange(8.0))[:, None] * np.cos(0.7 * np.arange(9.0)) + 0.05 * np.arange(72.0).reshape(8, 9),
    np.array([0.02, -0.015, 0.11]),
)
