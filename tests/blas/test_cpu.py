"""Choice of OpenBLAS kernels from the processor description of Linux."""

from __future__ import annotations

import pytest

from chainrule.blas.cpu import (
    Processor,
    better_kernels,
    canonical_name,
    openblas_choice,
    parse_cpuinfo,
    rank,
    widest_kernels,
)
from chainrule.blas.startup import requested_kernels

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
    assert better_kernels(processor) == kernels
    assert requested_kernels({"PATH": "/bin"}, processor) == kernels


@pytest.mark.parametrize("taken", ["Haswell", "SkylakeX", ""])
def test_a_variable_that_is_set_is_respected(taken):
    assert requested_kernels({"OPENBLAS_CORETYPE": taken}, DIAMOND_RAPIDS) is None


@pytest.mark.parametrize("off", ["off", "OFF", "0", "no", " false "])
def test_the_choice_can_be_disabled(off):
    assert requested_kernels({"CHAINRULE_BLAS": off}, DIAMOND_RAPIDS) is None


@pytest.mark.parametrize("on", ["", "on", "1"])
def test_other_values_disable_nothing(on):
    assert requested_kernels({"CHAINRULE_BLAS": on}, DIAMOND_RAPIDS) == "SkylakeX"


def test_nothing_is_chosen_for_an_unknown_processor():
    assert requested_kernels({}, None) is None


def test_wide_kernels_need_all_of_their_instructions():
    assert widest_kernels(AVX512) == "SkylakeX"
    assert widest_kernels(AVX512 - {"avx512vl"}) == "Haswell"
    assert widest_kernels(KNIGHTS_LANDING) == "Haswell"
    assert widest_kernels(AVX2 - {"fma"}) == "Sandybridge"
    assert widest_kernels(frozenset({"sse4_2"})) is None


def test_the_first_processor_is_read():
    found = parse_cpuinfo(CPUINFO)
    assert found is not None
    assert found[:3] == ("GenuineIntel", 19, 1)
    assert found.flags >= AVX512
    assert better_kernels(found) == "SkylakeX"


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
def test_other_text_is_not_parsed(text):
    assert parse_cpuinfo(text) is None


def test_truncated_flags_are_missing():
    found = parse_cpuinfo(CPUINFO[: CPUINFO.index("avx512bw")])
    assert found is not None
    assert better_kernels(found) == "Haswell"


def test_variants_have_the_rank_of_their_base():
    assert rank("zen") == rank("Haswell") == rank("HASWELL")
    assert rank("Cooperlake") == rank("SapphireRapids") == rank("SkylakeX")
    assert canonical_name("ZEN") == "Haswell"
    assert (
        canonical_name("neoversen1")
        is canonical_name("")
        is canonical_name(None)
        is rank("Katmai")
        is None
    )


def test_openblas_asks_processors_it_does_not_know_for_their_flags():
    assert openblas_choice(ZEN_5) is None
    assert openblas_choice(Processor("GenuineNew", 1, 1, AVX512)) is None
