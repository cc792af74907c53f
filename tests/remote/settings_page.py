"""`python tests/remote/settings_page.py` writes the table of a host's settings in its page of the documentation."""

import pathlib

from weft_native.host.settings import table

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/site/how-to/operate.md"
BEGIN, END = "<!-- settings -->\n", "<!-- end of settings -->\n"


def page(old: str) -> str:
    """The page, its table made anew."""
    before, rest = old.split(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
