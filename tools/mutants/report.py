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
INTRODUCTION = """# Injected faults, and how many the tests detect

`make test-mutants` measures how many mistakes in the code the tests detect. It injects one fault at a time into a copy
of the code: operands swapped, a comparison or a sign turned, off by one, a condition or a statement left out, a wrong
dtype or axis, an override renamed, an early return. Then it runs the tests that reach the fault, the quickest first,
until one fails that passes without it. The sample has equally many faults of each part, spread evenly over kinds of
faults and files. A hash of what a fault changes selects it, so the same code has the same sample, and a change of the
code changes few faults. The table counts all faults judged so far that the code still has, from the current sample and
from earlier ones. `python tools/mutants report` writes this page.

*The same program*: faults that do not change what the program does, so that no test can detect them. The reasons are
below, and the last column leaves these faults out.
"""


def write(
    everything: dict[str, list[Mutant]],
    sampled: list[tuple[int, str, Mutant]],
    results: dict[str, Any],
    history: dict[str, bool],
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
            f"Of the {len(sampled)} faults of the current sample, {left.total()} have not been judged yet ({where})."
            if left
            else f"All {len(sampled)} faults of the current sample have been judged."
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
    seen = {name: history.get(name) for name in bugs}
    counted = collections.Counter(seen.values())
    lines += [
        "",
        "## This project's own bugs",
        "",
        f"`python tools/mutants history` reintroduces {len(bugs)} past bugs of this project, one at a time:"
        f" the tests detect {counted[True]} and miss {counted[False]}"
        + (f"; {counted[None]} have not been tried yet" if counted[None] else "")
        + ".",
        "",
        *[
            f"- {name} ({commit})" + {True: "", False: ": **missed**", None: ": not tried yet"}[seen[name]]
            for name, commit in bugs.items()
        ],
    ]
    (tree.ROOT / "docs" / "mutants.md").write_text("\n".join(lines) + "\n")
    print("\n".join(table))
