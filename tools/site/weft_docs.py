"""What the documentation needs of Sphinx: live cells, docstrings' examples as cells, formulas as MathML."""

from __future__ import annotations

import doctest
import html
import re
from collections.abc import Iterator
from typing import Any

import latex2mathml.converter
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PROMPT = re.compile(r"^(>>>|\.\.\.)( |$)")
DIRECTIVE = re.compile(r"\s*# doctest:.*")


class Cell(nodes.General, nodes.Element):
    """Code that readers change and run: `code`, `options` (attributes of <weft-cell>), `expected` (its output)."""


class CellDirective(SphinxDirective):
    """A live cell.

    ```{cell}
    :autorun:
    import weft.numpy as jnp
    jnp.arange(3)
    ```
    """

    has_content = True
    option_spec = {
        "session": directives.unchanged,
        "autorun": directives.flag,
        "readonly": directives.flag,
        "hidden-code": directives.flag,
        "x64": directives.flag,
        "backend": directives.unchanged,
        "height": directives.unchanged,
        "raises": directives.unchanged,
        "page": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        options = {k: v for k, v in self.options.items() if k != "page"}  # which is for tests
        return [Cell(code="\n".join(self.content), options=options, expected="")]


def examples(text: str) -> Iterator[tuple[str, str, bool]]:
    """The cells of a doctest: code without prompts, what it prints, whether it raises.

    A cell ends after each statement that prints or raises, since a cell shows the value of its last statement. What
    comes before a statement that raises, such as an import, stands in the next cell too, because Run of a later cell
    leaves out those that raise.
    """
    code: list[str] = []
    for each in doctest.DocTestParser().get_examples(text + "\n"):
        code.append(DIRECTIVE.sub("", each.source).rstrip("\n"))
        if each.exc_msg is not None:
            yield "\n".join(code), each.exc_msg.strip().removesuffix(": …"), True
            code.pop()
        elif each.want:
            yield "\n".join(code), each.want.replace("<BLANKLINE>", "").rstrip("\n"), False
            code = []
    if code:
        yield "\n".join(code), "", False


def doctests_to_cells(app: Sphinx, tree: nodes.document) -> None:
    """Examples become cells. Those of one page share a namespace, as in a doctest."""
    for block in list(tree.findall(nodes.doctest_block)):
        cells = [
            Cell(code=code, options={"raises": None} if raises else {}, expected=expected)
            for code, expected, raises in examples(block.astext())
        ]
        block.replace_self(cells)


def visit_cell(translator: Any, node: Cell) -> None:
    attributes = "".join(
        f" {name}" if value is None else f' {name}="{html.escape(value)}"' for name, value in node["options"].items()
    )
    translator.body.append(
        f'<weft-cell class="notranslate"{attributes}><pre tabindex="0">{html.escape(node["code"], quote=False)}</pre>'
        "</weft-cell>\n"
    )
    if node["expected"]:
        text = html.escape(node["expected"], quote=False)
        translator.body.append(f'<pre class="expected" tabindex="0" aria-label="Output">{text}</pre>\n')
    raise nodes.SkipNode


def text_of_cell(translator: Any, node: Cell) -> None:
    """For the index of the search."""
    translator.add_text(node["code"])
    raise nodes.SkipNode


def visit_math(translator: Any, node: nodes.math) -> None:
    translator.body.append(latex2mathml.converter.convert(node.astext()))
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: nodes.math_block) -> None:
    formula = latex2mathml.converter.convert(node.astext(), display="block")
    translator.body.append(f'<div class="math" tabindex="0">{formula}</div>\n')
    raise nodes.SkipNode


def site_script(app: Sphinx, page: str, _: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """The script of cells, which the site has beside the documentation's folder, on pages that have one."""
    depth = page.count("/")
    context["site"] = "../" * (depth + 1)
    if tree is not None and next(tree.findall(Cell), None) is not None:
        context["metatags"] = context.get("metatags", "") + (
            f'<script type="module" src="{context["site"]}weft-cell.js"></script>'
        )


STAR = re.compile(r"(?<![\\*`\w])(\*{1,2})(?=[\w,])")
BAR = re.compile(r"(?<!\|)\|(?=\w)")


def as_text(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with code in backticks: their stars and bars mean themselves."""
    for k, line in enumerate(lines):
        if not PROMPT.match(line.lstrip()):
            parts = re.split(r"(`+[^`]*`+)", line)
            for at in range(1, len(parts), 2):
                if re.match(r"\w", parts[at + 1]):  # a plural's s: a mark of reStructuredText ends before a space
                    parts[at] += "\\ "
            parts[::2] = [BAR.sub(r"\\|", STAR.sub(lambda m: "\\*" * len(m[1]), part)) for part in parts[::2]]
            lines[k] = "".join(parts)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(Cell, html=(visit_cell, None), text=(text_of_cell, None))
    app.add_directive("cell", CellDirective)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.connect("autodoc-process-docstring", as_text)
    app.connect("doctree-read", doctests_to_cells)
    app.connect("html-page-context", site_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
