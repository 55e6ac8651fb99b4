"""Thin-film optics: the thicknesses of an antireflection coating, by gradients.

Four layers on glass are to reflect as little visible light as possible. The program computes the
reflectance as it would with NumPy, by products of 2 x 2 matrices (H. A. Macleod, Thin-Film Optical
Filters, 5th ed., chapter 2): only the import line is another one.

It needs SciPy. Run it: python3 examples/thin_film.py
"""

from scipy.optimize import minimize

import chainrule as cr
import chainrule.numpy as np

AIR, GLASS = 1.0, 1.52
LAYERS = [2.35, 1.38, 2.35, 1.38]  # titanium dioxide and magnesium fluoride, from the glass to air
WAVELENGTHS = np.linspace(400.0, 700.0, 61)  # nm
START = [20.0, 30.0, 120.0, 90.0]  # nm


def reflectance(thicknesses, wavelengths=WAVELENGTHS):
    """Return the reflected part of the light at each wavelength, at normal incidence."""
    field = np.ones((len(wavelengths), 2), dtype=complex)  # electric and magnetic, in the glass
    field[:, 1] = GLASS
    for index, thickness in zip(LAYERS, thicknesses, strict=True):
        phase = 2 * np.pi * index * thickness / wavelengths
        layer = np.empty((len(wavelengths), 2, 2), dtype=complex)
        layer[:, 0, 0] = layer[:, 1, 1] = np.cos(phase)
        layer[:, 0, 1] = 1j * np.sin(phase) / index
        layer[:, 1, 0] = 1j * np.sin(phase) * index
        field = np.einsum("wij,wj->wi", layer, field)
    electric, magnetic = field.T
    amplitude = (AIR * electric - magnetic) / (AIR * electric + magnetic)
    return np.abs(amplitude) ** 2


def loss(thicknesses):
    return np.mean(reflectance(thicknesses))


def main():
    start = np.array(START)
    result = minimize(
        cr.value_and_grad(loss), start, jac=True, method="L-BFGS-B", bounds=[(5, 300)] * 4
    )
    bare = ((GLASS - AIR) / (GLASS + AIR)) ** 2
    print(f"Bare glass reflects {bare:.2%}")
    print(f"with the first coating, {loss(start):.2%}")
    print(f"after {result.nit} steps, {result.fun:.2%}")
    print("Layers from the glass to the air (nm):", ", ".join(f"{d:.1f}" for d in result.x))

    few = reflectance(result.x, np.array([400.0, 550.0, 700.0]))
    print("Reflectance at 400, 550 and 700 nm:", ", ".join(f"{r:.2%}" for r in few.tolist()))

    # How exactly must they be made? The curvature says what an error of 1 nm costs.
    curvature = np.diagonal(cr.hessian(loss)(result.x))
    print("Reflectance that 1 nm adds:", ", ".join(f"{c / 2:.1e}" for c in curvature))
    return bare, loss(start), result, curvature


if __name__ == "__main__":
    main()
