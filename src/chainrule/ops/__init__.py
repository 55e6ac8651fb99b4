"""The public operations, by subject.

One more costs a primitive's block, a function in one of these modules (and its name in
`methods`, if it is a method too), and a row in the conformance table of the tests.
"""

from typing import TYPE_CHECKING

from chainrule.ops import (
    added,
    arithmetic,
    blends,
    broadcasting,
    comparison,
    complexes,
    contraction,
    conversion,
    diagonals,
    distances,
    dtypes,
    exchange,
    exponential,
    extrema,
    finding,
    indexing,
    joining,
    kinks,
    methods,
    moments,
    ordering,
    overwriting,
    pairs,
    places,
    products,
    putting,
    quantiles,
    questions,
    reductions,
    regions,
    repeating,
    running,
    scattering,
    sets,
    shaping,
    slopes,
    special,
    stacking,
    statistics,
    summation,
    trigonometry,
    turning,
)
from chainrule.ops.added import *  # noqa: F403
from chainrule.ops.arithmetic import *  # noqa: F403
from chainrule.ops.blends import *  # noqa: F403
from chainrule.ops.broadcasting import *  # noqa: F403
from chainrule.ops.comparison import *  # noqa: F403
from chainrule.ops.complexes import *  # noqa: F403
from chainrule.ops.contraction import *  # noqa: F403
from chainrule.ops.conversion import *  # noqa: F403
from chainrule.ops.diagonals import *  # noqa: F403
from chainrule.ops.distances import *  # noqa: F403
from chainrule.ops.dtypes import *  # noqa: F403
from chainrule.ops.exchange import *  # noqa: F403
from chainrule.ops.exponential import *  # noqa: F403
from chainrule.ops.extrema import *  # noqa: F403
from chainrule.ops.finding import *  # noqa: F403
from chainrule.ops.indexing import *  # noqa: F403
from chainrule.ops.joining import *  # noqa: F403
from chainrule.ops.kinks import *  # noqa: F403
from chainrule.ops.moments import *  # noqa: F403
from chainrule.ops.ordering import *  # noqa: F403
from chainrule.ops.overwriting import *  # noqa: F403
from chainrule.ops.pairs import *  # noqa: F403
from chainrule.ops.places import *  # noqa: F403
from chainrule.ops.products import *  # noqa: F403
from chainrule.ops.putting import *  # noqa: F403
from chainrule.ops.quantiles import *  # noqa: F403
from chainrule.ops.questions import *  # noqa: F403
from chainrule.ops.reductions import *  # noqa: F403
from chainrule.ops.regions import *  # noqa: F403
from chainrule.ops.repeating import *  # noqa: F403
from chainrule.ops.running import *  # noqa: F403
from chainrule.ops.scattering import *  # noqa: F403
from chainrule.ops.sets import *  # noqa: F403
from chainrule.ops.shaping import *  # noqa: F403
from chainrule.ops.slopes import *  # noqa: F403
from chainrule.ops.special import *  # noqa: F403
from chainrule.ops.stacking import *  # noqa: F403
from chainrule.ops.statistics import *  # noqa: F403
from chainrule.ops.summation import *  # noqa: F403
from chainrule.ops.trigonometry import *  # noqa: F403
from chainrule.ops.turning import *  # noqa: F403

# mypy can't read an `__all__` put together from others; without one, it takes what the stars bring.
if not TYPE_CHECKING:
    __all__ = [
        name
        for module in (
            arithmetic,
            exponential,
            trigonometry,
            kinks,
            pairs,
            blends,
            special,
            comparison,
            reductions,
            statistics,
            extrema,
            quantiles,
            running,
            moments,
            finding,
            shaping,
            ordering,
            diagonals,
            joining,
            indexing,
            scattering,
            putting,
            turning,
            regions,
            repeating,
            stacking,
            contraction,
            summation,
            products,
            added,
            distances,
            complexes,
            conversion,
            broadcasting,
            sets,
            dtypes,
            exchange,
            questions,
            slopes,
            places,
            overwriting,
        )
        for name in module.__all__
    ]

methods.attach()
