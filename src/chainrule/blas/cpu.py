"""Choice of OpenBLAS kernels for processors that OpenBLAS misjudges.

OpenBLAS identifies processors by vendor, family and model, and reads the feature flags only of
unknown ones. It assigns some known models kernels that use fewer features than they have.
`openblas_choice` lists these, found by faking `cpuid` under a debugger with the libraries in
NumPy's wheels: 0.3.27, 0.3.30 and 0.3.31 agree. AMD's Zen 4 and 5 and Intel's processors up to
family 6 get their AVX-512 kernels without help.

This module is imported before NumPy, so its imports are small.
"""

from __future__ import annotations

from collections import namedtuple

AVX512 = frozenset(
    {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
)  # the features of Skylake-X
AVX2 = frozenset({"avx", "avx2", "fma"})

# The kernel sets in NumPy's wheels, from the most portable to the widest, and their variants in
# larger builds.
KERNELS = ("Prescott", "Nehalem", "Sandybridge", "Haswell", "SkylakeX")
VARIANTS = {"Zen": "Haswell", "Cooperlake": "SkylakeX", "SapphireRapids": "SkylakeX"}
INSTRUCTIONS = dict(zip(KERNELS, ("SSE3", "SSE4.2", "AVX", "AVX2", "AVX-512"), strict=True))

_CANONICAL_NAMES = {name.lower(): name for name in (*KERNELS, *VARIANTS)}

# The fields of /proc/cpuinfo: vendor_id, cpu family, model and flags.
Processor = namedtuple("Processor", "vendor family model flags")


def parse_cpuinfo(text: str) -> Processor | None:
    """Return the first processor in the text of ``/proc/cpuinfo``; None if it is not an x86."""
    first, _, _ = text.partition("\n\n")
    fields = {}
    for line in first.splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    try:
        family, model = int(fields["cpu family"]), int(fields["model"])
        return Processor(fields["vendor_id"], family, model, frozenset(fields["flags"].split()))
    except (KeyError, ValueError):
        return None


def canonical_name(name: str | None) -> str | None:
    """Return the kernel set of a name or variant, in any case; None if unknown."""
    canonical = _CANONICAL_NAMES.get((name or "").lower(), "")
    return VARIANTS.get(canonical, canonical) or None


def rank(name: str | None) -> int | None:
    """Return the index of a kernel set in `KERNELS`, None if unknown."""
    found = canonical_name(name)
    return None if found is None else KERNELS.index(found)


def widest_kernels(flags: frozenset[str]) -> str | None:
    """Return the widest kernels for a processor with these flags, None without AVX."""
    if flags >= AVX512:
        return "SkylakeX"
    if flags >= AVX2:
        return "Haswell"
    return "Sandybridge" if "avx" in flags else None


def openblas_choice(processor: Processor) -> str | None:
    """Return the kernels that OpenBLAS chooses by model alone; None if it reads the flags."""
    vendor, family, model, _ = processor
    if vendor == "GenuineIntel" and family > 15:  # Nova Lake, Diamond Rapids: taken for a Pentium 4
        return "Prescott"
    if vendor == "GenuineIntel" and (family, model) == (6, 102):  # Cannon Lake
        return "Haswell"
    if vendor == "HygonGenuine" and family == 24:  # taken for Zen 1, also later ones with AVX-512
        return "Haswell"
    return None


def better_kernels(processor: Processor) -> str | None:
    """Return the kernels for a processor that OpenBLAS misjudges, None for others."""
    chosen_rank, possible = rank(openblas_choice(processor)), widest_kernels(processor.flags)
    possible_rank = rank(possible)
    return (
        possible
        if chosen_rank is not None and possible_rank is not None and possible_rank > chosen_rank
        else None
    )
