"""The cells of the documentation run, page by page, in the order in which they stand, as readers run them."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from platforms import need

need("wasm")

SOURCES = pathlib.Path(__file__).parents[2] / "docs" / "site"
PAGES = sorted(p for p in SOURCES.rglob("*.md") if "```{cell}" in p.read_text())
CELL = re.compile(r"^```\{cell\}\n((?::[\w-]+:[^\n]*\n)*)(.*?)^```$", re.M | re.S)

# The whole page as one program. What a cell raises is compared with what it says that it does.
RUN = """
import ast, json, sys
import weft.as_jax
space = {"__name__": "__main__"}
for number, (options, code) in enumerate(json.load(sys.stdin), 1):
    if "page" in options:
        continue
    wanted = options.get("raises")
    try:
        exec(compile(code, f"<cell {number}>", "exec"), space)
    except BaseException as e:
        if type(e).__name__ != wanted:
            print(f"cell {number}:\\n{code}", file=sys.stderr)
            raise
    else:
        assert wanted is None, f"cell {number} ended without {wanted}:\\n{code}"
"""


def cells(page: pathlib.Path) -> list[tuple[dict[str, str], str]]:
    found = []
    for options, code in CELL.findall(page.read_text()):
        pairs = [line[1:].split(":", 1) for line in options.splitlines()]
        found.append(({name: value.strip() for name, value in pairs}, code))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(SOURCES)))
def test_cells_run(page):
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(cells(page)),
        env={**os.environ, "JAX_PLATFORMS": "wasm", "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_cell_is_closed():
    assert PAGES
    for page in PAGES:
        text = page.read_text()
        assert len(CELL.findall(text)) == text.count("```{cell}"), page
