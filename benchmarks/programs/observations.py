"""Bundle adjustment: the Jacobian of the reprojection residual, one observation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from programs.peers import Job, Peer, Program

COUNT = 100


def residual(lib: Any, camera: Any, point: Any, weight: Any, feature: Any) -> Any:
    """Return the reprojection error of a point in a camera, with the parameters of ADBench.

    The 11 camera parameters are a rotation (axis times angle), the centre, the focal length, the
    principal point and two coefficients of radial distortion.
    """
    rotation, centre, focal = camera[:3], camera[3:6], camera[6]
    angle = lib.sqrt((rotation * rotation).sum())
    axis, offset = rotation / angle, point - centre
    cosine, sine = lib.cos(angle), lib.sin(angle)
    along = axis * (axis * offset).sum() * (1 - cosine)
    rotated = offset * cosine + lib.linalg.cross(axis, offset) * sine + along
    plane = rotated[:2] / rotated[2]
    squared = (plane * plane).sum()
    distorted = plane * (1 + camera[9] * squared + camera[10] * squared * squared)
    return weight * (distorted * focal + camera[7:9] - feature)


def adjustment() -> Program:
    rng = np.random.default_rng(0)
    cameras = rng.standard_normal((COUNT, 11)).astype("float32") * 0.1
    cameras[:, 6] += 1.0
    points = rng.standard_normal((COUNT, 3)).astype("float32") + np.float32([0, 0, 5])
    weights = np.abs(rng.standard_normal(COUNT)).astype("float32")
    features = rng.standard_normal((COUNT, 2)).astype("float32")
    seen = list(zip(cameras, points, weights, features, strict=True))

    def ours(peer: Peer) -> Job:
        lib, grad = peer.lib, peer.grad
        observations = [[peer.tensor(a, requires_grad=True) for a in row[:3]] for row in seen]
        for row, (_, _, _, feature) in zip(observations, seen, strict=True):
            row.append(peer.tensor(feature))

        def jacobian(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
            found = residual(lib, camera, point, weight, feature)
            return [grad(found[i], (camera, point, weight), retain_graph=True) for i in range(2)]

        function = peer.compiled(jacobian)
        return lambda: [function(*row) for row in observations]

    def jitted() -> Job:
        import jax
        import jax.numpy as jnp

        def function(*row: Any) -> Any:
            return residual(jnp, *row)

        jacobian = jax.jit(jax.jacrev(function, (0, 1, 2)))
        placed = jax.device_put(seen)
        return lambda: jax.block_until_ready([jacobian(*row) for row in placed])

    return Program(ours, jitted, {"JAX jit": 1.0}, ("torch.compile",), measured={"rounds": 9})


PROGRAMS = {f"bundle adjustment, {COUNT} Jacobians, one by one": adjustment}
