"""The public operations, by subject.

One more costs a primitive's block, a function in one of these modules (and its name in
`methods`, if it is a method too), and a row in the conformance table of the tests.
"""

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
    inplace,
    joining,
    kinks,
    methods,
    moments,
    ordering,
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
from chainrule.ops.inplace import *  # noqa: F403
from chainrule.ops.joining import *  # noqa: F403
from chainrule.ops.kinks import *  # noqa: F403
from chainrule.ops.moments import *  # noqa: F403
from chainrule.ops.ordering import *  # noqa: F403
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

__all__: list[str] = []
__all__ += arithmetic.__all__
__all__ += exponential.__all__
__all__ += trigonometry.__all__
__all__ += kinks.__all__
__all__ += pairs.__all__
__all__ += blends.__all__
__all__ += special.__all__
__all__ += comparison.__all__
__all__ += reductions.__all__
__all__ += statistics.__all__
__all__ += extrema.__all__
__all__ += quantiles.__all__
__all__ += running.__all__
__all__ += moments.__all__
__all__ += finding.__all__
__all__ += shaping.__all__
__all__ += ordering.__all__
__all__ += diagonals.__all__
__all__ += joining.__all__
__all__ += indexing.__all__
__all__ += scattering.__all__
__all__ += putting.__all__
__all__ += turning.__all__
__all__ += regions.__all__
__all__ += repeating.__all__
__all__ += stacking.__all__
__all__ += contraction.__all__
__all__ += summation.__all__
__all__ += products.__all__
__all__ += added.__all__
__all__ += distances.__all__
__all__ += complexes.__all__
__all__ += conversion.__all__
__all__ += broadcasting.__all__
__all__ += sets.__all__
__all__ += dtypes.__all__
__all__ += exchange.__all__
__all__ += questions.__all__
__all__ += slopes.__all__
__all__ += places.__all__
__all__ += inplace.__all__

methods.attach()
