"""Sphinx's settings. `python3 dev.py docs` builds the site."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for site_extension.py

import chainrule

project = "chainrule"
author = "The chainrule authors"
copyright = "The chainrule authors"
version = release = chainrule.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "site_extension",
    "cell_outputs",  # wraps the long messages that cells print
]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
templates_path: list[str] = []
default_role = "literal"
add_module_names = False
python_maximum_signature_line_length = 88

# Docstrings.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False
napoleon_custom_sections = [("Attributes", "params_style")]

# Pages in Markdown.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_build" / "executed")
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_render_error_lexer = "myst-ansi"

# Appearance. Nothing comes from another host.
html_theme = "furo"
html_title = f"chainrule {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_theme_options = {"navigation_with_keys": True}
