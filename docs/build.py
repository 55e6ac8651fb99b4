"""Build the site into docs/_build/html, and check that its pages need no other host.

python3 dev.py docs             build; warnings are errors
python3 dev.py docs --fresh     forget earlier results first
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from jupyter_cache import get_cache
from sphinx.cmd.build import main as sphinx

DOCS = Path(__file__).resolve().parent
BUILD = DOCS / "_build"
HTML = BUILD / "html"
# Settings of the kernels that run the pages: errors without the library's frames, sharp pictures.
KERNEL = """\
c.InteractiveShell.xmode = "Minimal"
c.InlineBackend.figure_formats = {"retina"}
c.IPKernelApp.log_level = "ERROR"
"""
# What a browser fetches by itself; links that readers follow may lead anywhere.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?:https?:)?//[^"'>\s]+"""
    r"""|<link[^>]*rel=["'](?:stylesheet|preload)["'][^>]*href=["']?(?:https?:)?//[^"'>\s]+"""
    r"""|@import\s+(?:url\()?["']?(?:https?:)?//[^"')\s]+"""
)


def fetched_from_others(folder: Path) -> list[str]:
    """Return what the pages would fetch from other hosts."""
    pages = [*folder.rglob("*.html"), *folder.rglob("*.css")]
    return [
        f"{page.relative_to(folder)}: {found[0]}"
        for page in pages
        for found in FETCHED.finditer(page.read_text(encoding="utf-8"))
    ]


def main(options: Sequence[str]) -> int:
    if "--fresh" in options:
        shutil.rmtree(BUILD, ignore_errors=True)
    start = time.monotonic()
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # a debugger's warning in each kernel
    os.environ["IPYTHONDIR"] = str(BUILD / "ipython")
    profile = BUILD / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text(KERNEL, encoding="utf-8")
    get_cache(BUILD / "executed").list_cache_records()  # made before the processes race for it
    settings = ["--jobs", "auto", "--fail-on-warning", "--quiet"]
    code = sphinx([*settings, "-d", str(BUILD / "doctrees"), str(DOCS), str(HTML)])
    if code:
        print(f"The site was not built: see the warnings above. (exit status {code})")
        return code
    others = fetched_from_others(HTML)
    if others:
        print("Pages must not fetch anything from other hosts:", *others, sep="\n")
        return 1
    print(f"The site is in {HTML / 'index.html'}, after {time.monotonic() - start:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
