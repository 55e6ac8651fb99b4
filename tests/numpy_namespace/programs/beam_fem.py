import numpy as np


def element_stiffness(E, I, L):
    k = np.array([[12.0, 6 * L, -12.0, 6 * L],
                  [6 * L, 4 * L ** 2, -6 * L, 2 * L ** 2],
                  [-12.0, -6 * L, 12.0, -6 * L],
                  [6 * L, 2 * L ** 2, -6 * L, 4 * L ** 2]])
    return E * I / L ** 3 * k


def program(heights, load):
    """Compliance of a cantilever of rectangular sections (Euler-Bernoulli beam)."""
    n_el = heights.size
    width, E, length = 0.05, 2.1e5, 2.0
    Le = length / n_el
    ndof = 2 * (n_el + 1)
    K = np.zeros((ndof, ndof))
    F = np.zeros(ndof)
    for e in range(n_el):
        I = width * heights[e] ** 3 / 12.0
        dofs = np.arange(2 * e, 2 * e + 4)
        K[np.ix_(dofs, dofs)] += element_stiffness(E, I, Le)
        # consistent nodal load
        F[dofs] += load * np.array([Le / 2, Le ** 2 / 12, Le / 2, -Le ** 2 / 12])

    # penalty support in the middle, then clamp the left end
    mid = 2 * (n_el // 2)
    K[mid, mid] += 5.0
    K[:2, :] = 0.0
    K[:, :2] = 0.0
    K.flat[:2 * (ndof + 1):ndof + 1] = 1.0
    F[:2] = 0.0

    U = np.linalg.solve(K, F)
    moments = []
    for e in range(n_el):
        ue = U[2 * e:2 * e + 4]
        fe = element_stiffness(E, width * heights[e] ** 3 / 12.0, Le).dot(ue)
        moments.append([fe[1], -fe[3]])
    moments = np.array(moments)
    stress = 6 * np.abs(moments).max(axis=1) / (width * heights ** 2)
    return 50 * F.dot(U) + 1e-3 * (stress ** 4).sum() ** 0.25


ARGUMENTS = (np.array([0.14, 0.13, 0.115, 0.1, 0.09, 0.075]), 0.8)
