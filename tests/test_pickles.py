"""Pickles: objects that users keep can be read, under former module names too."""

import pickle
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.backend import is_array

MATRIX = cr.tensor([[4.0, 1.0], [1.0, 3.0]])


def square(x: Any) -> Any:
    return (x * x).sum()


KEPT = {
    "chainrule.generators": cr.Generator().manual_seed(3),
    "chainrule.compiler.function": cr.compile(square),
    "chainrule.linalg.elimination": cr.linalg.lu(MATRIX),
    "chainrule.linalg.former": cr.svd(MATRIX),
    "chainrule.linalg.spectra": cr.linalg.eigh(MATRIX),
    "chainrule.linalg.unchecked": cr.linalg.inv_ex(MATRIX),
    "chainrule.ops.extrema": cr.max(MATRIX, 0),
    "chainrule.ops.histograms": cr.histogram(MATRIX, 3),
    "chainrule.ops.moments": cr.aminmax(MATRIX),
    "chainrule.ops.pairs": cr.frexp(MATRIX),
    "chainrule.ops.sets": cr.unique_counts(MATRIX),
}
"""Objects by the module that held their type in earlier versions."""


def content(kept: Any) -> Any:
    if isinstance(kept, cr.Generator):
        return kept.get_state()
    if isinstance(kept, tuple):
        return [content(part) for part in kept]
    if isinstance(kept, cr.Tensor):
        return kept.numpy()
    return kept(MATRIX).numpy()


def assert_same(got: Any, wanted: Any) -> None:
    if is_array(wanted) or isinstance(wanted, dict):
        np.testing.assert_equal(got, wanted)
    elif isinstance(wanted, list):
        assert len(got) == len(wanted)
        for pair in zip(got, wanted, strict=True):
            assert_same(*pair)
    else:
        assert_same(np.asarray(content(got)), np.asarray(content(wanted)))


FUNCTIONS = [
    line.split()
    for line in """
    autograd.derivatives autograd_backward
    compiler.exporting export
    compiler.function compile
    control cond
    creation.fresh as_tensor
    draws binomial
    fft.along fft.fft
    fft.frequencies fft.fftshift
    fft.planes fft.fft2
    fft.several fft.fftn
    fft.spectrograms istft
    generators Generator
    linalg.elimination linalg.lu
    linalg.former cholesky
    linalg.low_rank pca_lowrank
    linalg.ranks linalg.matrix_rank
    linalg.spectra linalg.eig
    linalg.systems inverse
    linalg.triangular cholesky_inverse
    linalg.unchecked linalg.cholesky_ex
    nn.functional.adaptive adaptive_avg_pool1d
    nn.functional.alignment nn.functional.ctc_loss
    nn.functional.avg_pooling avg_pool1d
    nn.functional.binary nn.functional.binary_cross_entropy
    nn.functional.channel_norms group_norm
    nn.functional.choices nn.functional.glu
    nn.functional.class_margins nn.functional.multi_margin_loss
    nn.functional.classification nn.functional.cross_entropy
    nn.functional.dropouts alpha_dropout
    nn.functional.embeddings nn.functional.embedding
    nn.functional.folding channel_shuffle
    nn.functional.grids nn.functional.affine_grid
    nn.functional.hard hardshrink
    nn.functional.layer_norms layer_norm
    nn.functional.layers nn.functional.bilinear
    nn.functional.margins nn.functional.cosine_embedding_loss
    nn.functional.max_pooling max_pool1d
    nn.functional.rectifiers celu
    nn.functional.resizing nn.functional.interpolate
    nn.functional.similarity cosine_similarity
    ops.added addbmm
    ops.bessel special.bessel_j0
    ops.blends addcdiv
    ops.broadcasting broadcast_arrays
    ops.choosing masked_fill
    ops.complexes adjoint
    ops.contraction bmm
    ops.covariance corrcoef
    ops.distances cdist
    ops.exchange from_dlpack
    ops.exponential exp
    ops.extrema amax
    ops.finding argwhere
    ops.histograms bincount
    ops.integers bitwise_left_shift
    ops.joining cat
    ops.kinks abs
    ops.moments aminmax
    ops.ordering flip
    ops.overwriting abs_
    ops.pairs arctan2
    ops.places as_strided
    ops.probability special.beta
    ops.putting index_put
    ops.quantiles nanquantile
    ops.questions detach
    ops.regions diagonal_scatter
    ops.repeating cartesian_prod
    ops.running cummax
    ops.scattering index_add
    ops.sets isin
    ops.shaping broadcast_to
    ops.slopes gradient
    ops.sorting argsort
    ops.stacking atleast_1d
    ops.summation einsum
    ops.trigonometry acos
    ops.turning fliplr
    transforms.lanes.vmap vmap
    """.strip().splitlines()
]
"""Former modules of public functions, and one of them each."""


@pytest.mark.parametrize("former", KEPT)
def test_pickles_of_earlier_versions_can_be_read(former: str) -> None:
    kept = KEPT[former]
    reduced = kept.__reduce_ex__(2)[0] if isinstance(kept, cr.Generator) else type(kept)
    written = pickle.dumps(kept, protocol=0)
    named = f"c{reduced.__module__}\n".encode()
    assert named in written
    read = pickle.loads(written.replace(named, f"c{former}\n".encode()))
    assert type(read) is type(kept)
    assert_same(content(read), content(kept))


@pytest.mark.parametrize(("former", "public"), FUNCTIONS)
def test_functions_are_found_under_former_module_names(former: str, public: str) -> None:
    function = attrgetter(public)(cr)
    named = f"cchainrule.{former}\n{function.__name__}\n.".encode()  # a pickle of protocol 0
    found = pickle.loads(named)
    own, wanted = (getattr(each, "without_out", each) for each in (found, function))
    assert own is wanted


def test_a_former_module_has_nothing_but_what_moved() -> None:
    import chainrule.generators as former  # as pickle imports it

    assert former.Generator is cr.Generator
    with pytest.raises(AttributeError, match="no_such_name"):
        former.no_such_name  # noqa: B018
    assert pickle.loads(pickle.dumps(former)) is former  # cloudpickle packs what code may refer to
