"""An electromagnetic wave: the gradient of a simulation in time with respect to a material.

A pulse of light runs from the left through vacuum into glass. A layer between them is designed so
that as little as possible is reflected. The simulation is that of K. S. Yee (1966): electric and
magnetic field on staggered grids, updated in place in turns. It is a NumPy program: only the import
line is another one.

It needs SciPy. Run it: python3 examples/electromagnetic_wave.py
"""

from scipy.optimize import minimize

import chainrule as cr
import chainrule.numpy as np

CELLS, STEPS = 100, 200
LAYER = slice(60, 66)
GLASS = 4.0  # relative permittivity; vacuum has 1
SOURCE, DETECTOR = 20, 10
WAVELENGTH = 34.0  # cells, in vacuum: a quarter of that in a layer of permittivity 2 is the layer
PASSED = 105  # step at which the pulse has passed the detector on its way to the left


def material(layer):
    """Return the permittivity of each cell."""
    permittivity = np.ones(CELLS)
    permittivity[LAYER] = layer
    permittivity[LAYER.stop :] = GLASS
    return permittivity


def simulate(layer):
    """Return the electric field at the detector at each step, in which light crosses one cell."""
    permittivity = material(layer)
    right_end = (1 / np.sqrt(GLASS) - 1) / (1 / np.sqrt(GLASS) + 1)
    electric, magnetic = np.zeros(CELLS), np.zeros(CELLS - 1)
    seen = np.zeros(STEPS)
    for step in range(STEPS):
        magnetic += electric[1:] - electric[:-1]
        left, right = electric[1].copy(), electric[-2].copy()
        electric[1:-1] += (magnetic[1:] - magnetic[:-1]) / permittivity[1:-1]
        electric[0] = left  # waves leave at both ends (G. Mur, 1981)
        electric[-1] = right + right_end * (electric[-2] - electric[-1])
        time = step - 50
        electric[SOURCE] += np.exp(-((time / 14) ** 2)) * np.sin(2 * np.pi * time / WAVELENGTH)
        seen[step] = electric[DETECTOR]
    return seen


def reflected(layer):
    """Return the energy that comes back to the detector."""
    return np.sum(simulate(layer)[PASSED:] ** 2)


def main():
    cells = LAYER.stop - LAYER.start
    start = np.linspace(1.0, GLASS, cells)
    none = reflected(np.ones(cells))
    result = minimize(
        cr.value_and_grad(lambda layer: reflected(layer) / none),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(1.0, GLASS)] * cells,
        options={"maxiter": 6},
    )
    print(f"{STEPS} steps of {CELLS} cells; a gradient takes one run forward and one back.")
    print("Reflected energy, relative to glass without a layer")
    print(f"  a layer that rises evenly:  {reflected(start) / none:.4f}")
    print(f"  a quarter-wave layer:       {reflected(np.full(cells, np.sqrt(GLASS))) / none:.4f}")
    print(f"  after {result.nit} steps:              {result.fun:.4f}")
    print("Permittivity of its cells:", ", ".join(f"{e:.2f}" for e in result.x))
    return none, start, result


if __name__ == "__main__":
    main()
