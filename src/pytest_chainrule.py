"""Plugin of pytest: the fixture `gradcheck`.

It stands beside the package, not in it: pytest imports it in every session, and imports chainrule
only for a test that asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def gradcheck() -> Callable[..., None]:
    """Return `chainrule.testing.assert_gradients(f, *args, **kwargs)`.

    It raises unless the gradients of ``f(*args, **kwargs)`` agree with central differences, and
    names the element and both numbers: ``def test_sin(gradcheck): gradcheck(np.sin, 0.3)``.
    """
    from chainrule.testing import assert_gradients

    return assert_gradients
