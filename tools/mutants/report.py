"""docs/mutants.md: the score of each folder, what became of the faults that no test noticed, and this project's own
past bugs.
"""

from __future__ import annotations

import collections
import tomllib
from typing import Any

import tree
from candidates import Mutant

COLUMNS = ("faults", "caught", "the same program", "survived", "unreached")
INTRODUCTION = """# Faults put in, and caught

How many mistakes in the code do the tests see? `make test-mutants` puts one fault at a time into a copy of the code:
operands swapped, a comparison or a sign turned, off by one, a condition or a statement left out, a wrong dtype or axis,
an override renamed, an early return. It runs the tests that reach the fault's place, the quickest first, until one
fails. The sample has as many faults of each part, spread evenly over kinds of faults and files, and is chosen by a hash
of what they change: the same code has the same sample, and a change of the code changes few of them. Here stand all
faults that have been judged and that the code as it is still has: those of its own sample, and of samples before it.
This page is written by `python tools/mutants report`.

*The same program*: faults that nothing can notice, since the program with them does the same; the reasons stand below.
The last column leaves them out.
"""


def write(
    everything: dict[str, list[Mutant]],
    sampled: list[tuple[int, str, Mutant]],
    results: dict[str, Any],
    history: dict[str, Any],
) -> None:
    same = {v["key"]: v["why"] for v in tomllib.loads((tree.HERE / "verdicts.toml").read_text())["equivalent"]}
    judged = {name: [m for m in found if m.key in results or m.key in same] for name, found in everything.items()}
    outcomes = {
        m.key: "the same program" if m.key in same else results[m.key]["outcome"]
        for found in judged.values()
        for m in found
    }
    rows = {
        name: collections.Counter({"faults": len(found)}) + collections.Counter(outcomes[m.key] for m in found)
        for name, found in judged.items()
    }
    total: collections.Counter[str] = sum(rows.values(), collections.Counter())
    lines = [
        INTRODUCTION,
        "| part | " + " | ".join(COLUMNS) + " | caught, of those that change something |",
        "|---" * (len(COLUMNS) + 2) + "|",
    ]
    for name, row in [*rows.items(), ("all", total)]:
        real = row["faults"] - row["the same program"]
        lines.append(
            f"| {name} | "
            + " | ".join(str(row[c]) for c in COLUMNS)
            + f" | {100 * row['caught'] / max(real, 1):.1f} % |"
        )
    left = collections.Counter(stratum for _, stratum, m in sampled if m.key not in results and m.key not in same)
    where = "; ".join(f"{name}: {count}" for name, count in left.items())
    lines += [
        "",
        (
            f"Of the {len(sampled)} faults of the sample of today's code {left.total()} have not been judged yet"
            f" ({where})."
            if left
            else f"All {len(sampled)} faults of the sample of today's code have been judged."
        ),
    ]
    table = lines[1:]
    for title, outcome in (("Not caught", ("survived", "unreached")), ("The same program", ("the same program",))):
        found = [
            f"- `{m.key}`" + (f": {same[m.key]}" if m.key in same else f" (line {m.line})")
            for group in judged.values()
            for m in group
            if outcomes[m.key] in outcome
        ]
        lines += ["", f"## {title}", "", *(found or ["None."])]
    bugs = {b["name"]: b["commit"] for b in tomllib.loads((tree.HERE / "history.toml").read_text())["bug"]}
    seen = {name: history.get(name, {}).get("caught") for name in bugs}
    counted = collections.Counter(seen.values())
    lines += [
        "",
        "## This project's own bugs",
        "",
        f"{len(bugs)} bugs that this project has had are put back one by one (`python tools/mutants history`):"
        f" {counted[True]} are caught, {counted[False]} missed"
        + (f", {counted[None]} not tried yet" if counted[None] else "")
        + ".",
        "",
        *[
            f"- {name} ({commit})" + {True: "", False: ": **missed**", None: ": not tried yet"}[seen[name]]
            for name, commit in bugs.items()
        ],
    ]
    (tree.ROOT / "docs" / "mutants.md").write_text("\n".join(lines) + "\n")
    print("\n".join(table))
