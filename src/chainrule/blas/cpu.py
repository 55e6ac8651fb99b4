"""Which of OpenBLAS' kernels suit a processor, and which processors OpenBLAS misjudges.

OpenBLAS knows processors by maker, family and model, and asks only those that it doesn't know what
they can do. A few that it knows by name can do more than it believes. `believed` lists them, as
found by answering `cpuid` in their place under a debugger, with the libraries in NumPy's wheels:
0.3.27, 0.3.30 and 0.3.31 agree. AMD's Zen 4 and 5 and Intel's processors up to family 6 get their
AVX-512 kernels without help.

This module is imported before NumPy, so it imports nothing that is large.
"""

from __future__ import annotations

from collections import namedtuple

AVX512 = frozenset(
    {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
)  # all that Skylake has
AVX2 = frozenset({"avx", "avx2", "fma"})

# The sets of kernels in NumPy's wheels, from those that run anywhere upwards, and the other names
# under which larger builds have variants of them.
KERNELS = ("Prescott", "Nehalem", "Sandybridge", "Haswell", "SkylakeX")
VARIANTS = {"Zen": "Haswell", "Cooperlake": "SkylakeX", "SapphireRapids": "SkylakeX"}
INSTRUCTIONS = dict(zip(KERNELS, ("SSE3", "SSE4.2", "AVX", "AVX2", "AVX-512"), strict=True))

_SPELLINGS = {name.lower(): name for name in (*KERNELS, *VARIANTS)}

# `vendor` is what the processor calls itself; `flags` are those of Linux.
Processor = namedtuple("Processor", "vendor family model flags")


def described(text: str) -> Processor | None:
    """Read the first processor of ``/proc/cpuinfo``; None if these lines aren't those of an x86."""
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


def known(name: str | None) -> str | None:
    """Return the set of kernels that goes by this name, in any case; None if there is none."""
    spelled = _SPELLINGS.get((name or "").lower(), "")
    return VARIANTS.get(spelled, spelled) or None


def rank(name: str | None) -> int | None:
    """Return the place of these kernels among `KERNELS`, None if it's not known."""
    found = known(name)
    return None if found is None else KERNELS.index(found)


def suitable(flags: frozenset[str]) -> str | None:
    """Return the widest kernels that a processor with these flags can run, None without AVX."""
    if flags >= AVX512:
        return "SkylakeX"
    if flags >= AVX2:
        return "Haswell"
    return "Sandybridge" if "avx" in flags else None


def believed(processor: Processor) -> str | None:
    """Return the kernels that OpenBLAS takes going by the name alone; None if it asks the flags."""
    vendor, family, model, _ = processor
    if vendor == "GenuineIntel" and family > 15:  # Nova Lake, Diamond Rapids: read as a Pentium 4
        return "Prescott"
    if vendor == "GenuineIntel" and (family, model) == (6, 102):  # Cannon Lake
        return "Haswell"
    if vendor == "HygonGenuine" and family == 24:  # read as Zen 1, the later ones with AVX-512 too
        return "Haswell"
    return None


def better(processor: Processor) -> str | None:
    """Return the kernels to choose for a processor that OpenBLAS misjudges, None for others."""
    taken, possible = rank(believed(processor)), suitable(processor.flags)
    reached = rank(possible)
    return possible if taken is not None and reached is not None and reached > taken else None
