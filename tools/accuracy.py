"""Writes docs/accuracy.md: the largest error of each function on each backend, and of jax on the CPU beside it: make
accuracy

    python tools/accuracy.py                 measure what is not saved, and write the page
    python tools/accuracy.py erf svd         measure these functions again and print their rows
    python tools/accuracy.py --page          write the page from what is saved, though sources have changed since then

What was measured is kept in build/accuracy, a file for each function and dtype, so that a run that was cut off goes on
where it was. A column of a row is measured again when its arguments, or the sources of its backend, have changed.
Real jax runs in a process of its own, whose interpreter WEFT_ORACLE_PYTHON names (build/oracle/bin/python if it is not
set); it is never imported here. accuracy_cases.py says what is measured, accuracy_exact.py what is right,
accuracy_errors.py how far off results are; accuracy_remarks.toml holds the remarks that the page makes.
"""

from __future__ import annotations

import argparse

import accuracy_page
from accuracy_cases import CASES
from accuracy_measure import measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="functions to measure again; all that are not saved if none is named")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if not options.page:
        measure(options.names or list(CASES), bool(options.names))
    if not options.names:
        accuracy_page.write()


if __name__ == "__main__":
    main()
