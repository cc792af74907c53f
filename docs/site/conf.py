"""How Sphinx builds the documentation. `make site` prepares the sources (tools/site) and runs it."""

import weft

project = "weft"
author = "the weft authors"
version = release = weft.__version__
html_title = "weft"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "weft_docs"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
exclude_patterns = ["_static", "extra"]
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
html_extra_path = ["extra"]  # errors.json, which messages in the playground look up
html_css_files = ["docs.css"]
html_math_renderer = "mathml"
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
# The colours of the playground.
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {
        "font-stack": "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Inter, 'Liberation Sans', sans-serif",
        "font-stack--headings": "var(--font-stack)",
        "font-stack--monospace": (
            "ui-monospace, 'SF Mono', 'JetBrains Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
        ),
        "color-brand-primary": "#3c50bd",
        "color-brand-content": "#3c50bd",
        "color-brand-visited": "#3c50bd",
        "color-api-name": "#3c50bd",
        "color-api-pre-name": "#6a6961",
        "color-background-primary": "#fffefb",
        "color-background-secondary": "#f6f4ee",
        "color-background-hover": "#ece9df",
        "color-background-border": "#e2ded3",
        "color-foreground-primary": "#22252b",
        "color-foreground-secondary": "#55564f",
        "color-foreground-muted": "#6a6961",
        "color-code-background": "#f6f4ee",
        "color-inline-code-background": "#f1eee5",
        "color-highlight-on-target": "#f3efd9",
    },
    "dark_css_variables": {
        "color-brand-primary": "#97a7ff",
        "color-brand-content": "#97a7ff",
        "color-brand-visited": "#97a7ff",
        "color-api-name": "#97a7ff",
        "color-api-pre-name": "#9a9c9b",
        "color-background-primary": "#1b1e23",
        "color-background-secondary": "#15171b",
        "color-background-hover": "#24282f",
        "color-background-border": "#2c3037",
        "color-foreground-primary": "#e4e3de",
        "color-foreground-secondary": "#b9bab6",
        "color-foreground-muted": "#9a9c9b",
        "color-code-background": "#15171b",
        "color-inline-code-background": "#262a31",
        "color-highlight-on-target": "#33331f",
    },
}
