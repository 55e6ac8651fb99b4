"""The choice of kernels for a processor, by its description in /proc/cpuinfo."""

from __future__ import annotations

import pytest

from chainrule.blas.cpu import Processor, believed, better, described, known, rank, suitable
from chainrule.blas.startup import choice

AVX = frozenset({"sse4_2", "avx"})
AVX2 = AVX | {"avx2", "fma"}
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
KNIGHTS_LANDING = AVX2 | {"avx512f", "avx512cd", "avx512er", "avx512pf"}

ZEN_2 = Processor("AuthenticAMD", 23, 49, AVX2)
ZEN_4 = Processor("AuthenticAMD", 25, 17, AVX512)
ZEN_5 = Processor("AuthenticAMD", 26, 2, AVX512)
SKYLAKE = Processor("GenuineIntel", 6, 85, AVX512)
GRANITE_RAPIDS = Processor("GenuineIntel", 6, 173, AVX512)
ALDER_LAKE = Processor("GenuineIntel", 6, 151, AVX2)
CANNON_LAKE = Processor("GenuineIntel", 6, 102, AVX512)
DIAMOND_RAPIDS = Processor("GenuineIntel", 19, 1, AVX512)
NOVA_LAKE = Processor("GenuineIntel", 18, 1, AVX2)
PENTIUM_4 = Processor("GenuineIntel", 15, 4, frozenset())
DHYANA = Processor("HygonGenuine", 24, 0, AVX2)
LATER_HYGON = Processor("HygonGenuine", 24, 7, AVX512)

CPUINFO = """\
processor	: 0
vendor_id	: GenuineIntel
cpu family	: 19
model		: 1
model name	: A processor: with a colon
stepping	: 1
flags		: fpu sse4_2 avx fma avx2 avx512f avx512dq avx512cd avx512bw avx512vl
bugs		:

processor	: 1
vendor_id	: Another
cpu family	: 6
"""


@pytest.mark.parametrize(
    ("processor", "kernels"),
    [
        (DIAMOND_RAPIDS, "SkylakeX"),
        (CANNON_LAKE, "SkylakeX"),
        (LATER_HYGON, "SkylakeX"),
        (NOVA_LAKE, "Haswell"),
        (DHYANA, None),
        (ZEN_2, None),
        (ZEN_4, None),
        (ZEN_5, None),
        (SKYLAKE, None),
        (GRANITE_RAPIDS, None),
        (ALDER_LAKE, None),
        (PENTIUM_4, None),
    ],
)
def test_kernels_are_chosen_for_misjudged_processors_only(processor, kernels):
    assert better(processor) == kernels
    assert choice({"PATH": "/bin"}, processor) == kernels


@pytest.mark.parametrize("taken", ["Haswell", "SkylakeX", ""])
def test_a_core_type_in_the_environment_is_kept(taken):
    assert choice({"OPENBLAS_CORETYPE": taken}, DIAMOND_RAPIDS) is None


@pytest.mark.parametrize("off", ["off", "OFF", "0", "no", " false "])
def test_it_can_be_turned_off(off):
    assert choice({"CHAINRULE_BLAS": off}, DIAMOND_RAPIDS) is None


@pytest.mark.parametrize("on", ["", "on", "1"])
def test_other_values_do_not_turn_it_off(on):
    assert choice({"CHAINRULE_BLAS": on}, DIAMOND_RAPIDS) == "SkylakeX"


def test_nothing_is_chosen_for_unknown_processors():
    assert choice({}, None) is None


def test_wide_kernels_need_all_of_their_instructions():
    assert suitable(AVX512) == "SkylakeX"
    assert suitable(AVX512 - {"avx512vl"}) == "Haswell"
    assert suitable(KNIGHTS_LANDING) == "Haswell"
    assert suitable(AVX2 - {"fma"}) == "Sandybridge"
    assert suitable(frozenset({"sse4_2"})) is None


def test_the_first_processor_is_read():
    found = described(CPUINFO)
    assert found is not None
    assert found[:3] == ("GenuineIntel", 19, 1)
    assert found.flags >= AVX512
    assert better(found) == "SkylakeX"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0\n",
        "processor : 0\nFeatures : fp asimd sve\nCPU architecture: 8\n",
        CPUINFO.replace("flags", "features"),
        CPUINFO.replace(": 19", ": new"),
    ],
)
def test_other_architectures_have_no_description(text):
    assert described(text) is None


def test_flags_that_are_cut_off_are_missing():
    found = described(CPUINFO[: CPUINFO.index("avx512bw")])
    assert found is not None
    assert better(found) == "Haswell"


def test_variants_rank_with_their_base_kernels():
    assert rank("zen") == rank("Haswell") == rank("HASWELL")
    assert rank("Cooperlake") == rank("SapphireRapids") == rank("SkylakeX")
    assert known("ZEN") == "Haswell"
    assert known("neoversen1") is known("") is known(None) is rank("Katmai") is None


def test_openblas_reads_the_flags_of_unknown_models():
    assert believed(ZEN_5) is None
    assert believed(Processor("GenuineNew", 1, 1, AVX512)) is None
