"""docs/mutants.md: the score of each folder, what became of the faults that no test noticed, and this project's own past bugs."""
from __future__ import annotations

import collections
import tomllib
from typing import Any

import tree
from candidates import Mutant

COLUMNS = ("faults", "caught", "the same program", "survived", "unreached", "not judged")
INTRODUCTION = """# Faults put in, and caught

How many mistakes in the code do the tests see? `make test-mutants` puts one fault at a time into a copy of the code:
operands swapped, a comparison or a sign turned, off by one, a condition or a statement left out, a wrong dtype or axis,
an override renamed, an early return. It runs the tests that reach the fault's place, the quickest first, until one fails.
The sample has as many faults of each part, spread evenly over kinds of faults and files, and is chosen by a hash of
what they change: the same code has the same sample, and a change of the code changes few of them.
This page is written by `python tools/mutants report`.

*The same program*: faults that nothing can notice, since the program with them does the same; the reasons stand below.
The last column leaves them out. What has not been judged yet counts as not caught.
"""


def write(sampled: list[tuple[int, str, Mutant]], results: dict[str, Any], history: dict[str, Any]) -> None:
    same = {v["key"]: v["why"] for v in tomllib.loads((tree.HERE / "verdicts.toml").read_text())["equivalent"]}
    rows: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    outcomes = {m.key: "the same program" if m.key in same else results.get(m.key, {"outcome": "not judged"})["outcome"] for _, _, m in sampled}
    for _, stratum, m in sampled:
        rows[stratum]["faults"] += 1
        rows[stratum][outcomes[m.key]] += 1
    total: collections.Counter[str] = sum(rows.values(), collections.Counter())
    lines = [INTRODUCTION, "| part | " + " | ".join(COLUMNS) + " | caught, of those that change something |", "|---" * (len(COLUMNS) + 2) + "|"]
    for name, row in [*rows.items(), ("all", total)]:
        real = row["faults"] - row["the same program"]
        lines.append(f"| {name} | " + " | ".join(str(row[c]) for c in COLUMNS) + f" | {100 * row['caught'] / max(real, 1):.1f} % |")
    table = lines[1:]
    for title, outcome in (("Not caught", ("survived", "unreached")), ("The same program", ("the same program",))):
        found = [f"- `{m.key}`" + (f": {same[m.key]}" if m.key in same else f" (line {m.line})") for _, _, m in sampled if outcomes[m.key] in outcome]
        lines += ["", f"## {title}", "", *(found or ["None."])]
    bugs = {b["name"]: b["commit"] for b in tomllib.loads((tree.HERE / "history.toml").read_text())["bug"]}
    seen = {name: history.get(name, {}).get("caught") for name in bugs}
    counted = collections.Counter(seen.values())
    lines += ["", "## This project's own bugs", "",
              f"{len(bugs)} bugs that this project has had are put back one by one (`python tools/mutants history`): {counted[True]} are caught, {counted[False]} missed"
              + (f", {counted[None]} not tried yet" if counted[None] else "") + ".", "",
              *[f"- {name} ({commit})" + {True: "", False: ": **missed**", None: ": not tried yet"}[seen[name]] for name, commit in bugs.items()]]
    (tree.ROOT / "docs" / "mutants.md").write_text("\n".join(lines) + "\n")
    print("\n".join(table))
