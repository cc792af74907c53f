"""How Sphinx builds the documentation. `make site` prepares the sources (tools/site) and runs it."""

import weft

project = "weft"
author = "the weft authors"
version = release = weft.__version__
html_title = "weft"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "weft_docs"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
exclude_patterns = ["_static"]
default_role = "code"  # as docstrings use backticks
suppress_warnings = ["ref.python", "myst.xref_missing"]  # one name in several modules; prose with brackets

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist", "attrs_inline"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

autodoc_typehints = "signature"
autodoc_member_order = "groupwise"
autodoc_default_options = {"members": False}
autodoc_preserve_defaults = True
python_display_short_literal_types = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
add_module_names = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["docs.css"]
html_math_renderer = "mathml"
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {
        "color-brand-primary": "#0b5e8a",
        "color-brand-content": "#0b5e8a",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
        "font-stack--monospace": "ui-monospace, 'SF Mono', Menlo, Consolas, monospace",
    },
    "dark_css_variables": {"color-brand-primary": "#7cc4ec", "color-brand-content": "#7cc4ec"},
}
