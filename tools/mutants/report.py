"""docs/mutants.md: the score of each folder, and what became of the faults that no test noticed."""
from __future__ import annotations

import collections
import json
import pathlib
import tomllib

import tree


def write(results_file: pathlib.Path) -> None:
    results = json.loads(results_file.read_text())
    verdicts = tomllib.loads((tree.HERE / "verdicts.toml").read_text()) if (tree.HERE / "verdicts.toml").exists() else {}
    same = {v["key"]: v["why"] for v in verdicts.get("equivalent", [])}
    rows: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for key, r in results.items():
        rows[r["stratum"]]["faults"] += 1
        rows[r["stratum"]]["the same program" if key in same else r["outcome"]] += 1
    columns = ("faults", "caught", "survived", "unreached", "the same program")
    total: collections.Counter[str] = sum(rows.values(), collections.Counter())
    lines = ["# Faults put in, and caught", "",
             "`make test-mutants` puts one fault at a time into the code, as many into each part of it, and runs the tests that reach its place until one fails.", "",
             "| part | " + " | ".join(columns) + " | caught, of those that change something |", "|---" * (len(columns) + 2) + "|"]
    for name, row in [*rows.items(), ("all", total)]:
        real = row["faults"] - row["the same program"]
        lines.append(f"| {name} | " + " | ".join(str(row[c]) for c in columns) + f" | {100 * row['caught'] / max(real, 1):.1f} % |")
    open_ = {k: r for k, r in results.items() if r["outcome"] != "caught" and k not in same}
    lines += ["", "## Not caught", "", *([f"- `{k}` (line {r['line']}; {r['outcome']}, {r['ran']} of {r['reaching']} tests run)" for k, r in open_.items()] or ["None."])]
    lines += ["", "## The same program", "", *[f"- `{k}`: {why}" for k, why in same.items() if k in results]]
    (tree.ROOT / "docs" / "mutants.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines[4:8 + len(rows)]))
