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
    choosing,
    comparison,
    complexes,
    contraction,
    conversion,
    covariance,
    diagonals,
    distances,
    dtypes,
    exchange,
    exponential,
    extrema,
    finding,
    histograms,
    indexing,
    integers,
    joining,
    kinks,
    methods,
    moments,
    order_statistics,
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
    sorting,
    special,
    stacking,
    statistics,
    summation,
    trigonometry,
    turning,
)
from chainrule.ops.added import *
from chainrule.ops.arithmetic import *
from chainrule.ops.blends import *
from chainrule.ops.broadcasting import *
from chainrule.ops.choosing import *
from chainrule.ops.comparison import *
from chainrule.ops.complexes import *
from chainrule.ops.contraction import *
from chainrule.ops.conversion import *
from chainrule.ops.covariance import *
from chainrule.ops.diagonals import *
from chainrule.ops.distances import *
from chainrule.ops.dtypes import *
from chainrule.ops.exchange import *
from chainrule.ops.exponential import *
from chainrule.ops.extrema import *
from chainrule.ops.finding import *
from chainrule.ops.histograms import *
from chainrule.ops.indexing import *
from chainrule.ops.integers import *
from chainrule.ops.joining import *
from chainrule.ops.kinks import *
from chainrule.ops.moments import *
from chainrule.ops.order_statistics import *
from chainrule.ops.ordering import *
from chainrule.ops.overwriting import *
from chainrule.ops.pairs import *
from chainrule.ops.places import *
from chainrule.ops.products import *
from chainrule.ops.putting import *
from chainrule.ops.quantiles import *
from chainrule.ops.questions import *
from chainrule.ops.reductions import *
from chainrule.ops.regions import *
from chainrule.ops.repeating import *
from chainrule.ops.running import *
from chainrule.ops.scattering import *
from chainrule.ops.sets import *
from chainrule.ops.shaping import *
from chainrule.ops.slopes import *
from chainrule.ops.sorting import *
from chainrule.ops.special import *
from chainrule.ops.stacking import *
from chainrule.ops.statistics import *
from chainrule.ops.summation import *
from chainrule.ops.trigonometry import *
from chainrule.ops.turning import *

# mypy can't read an `__all__` put together from others; without one, it takes what the stars bring.
if not TYPE_CHECKING:
    __all__ = [
        name
        for module in (
            arithmetic,
            exponential,
            trigonometry,
            kinks,
            choosing,
            pairs,
            blends,
            integers,
            special,
            comparison,
            reductions,
            statistics,
            extrema,
            sorting,
            order_statistics,
            quantiles,
            running,
            moments,
            covariance,
            finding,
            histograms,
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
