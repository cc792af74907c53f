"""Where faults are put, folder by folder, and which of them: evenly, and the same ones for the same seed.

A fault's place in the queue is a hash of its name, so that a change of the code changes the sample no more than it
must: what was found out about a fault stays known.
"""

from __future__ import annotations

import collections
import hashlib
import pathlib
from typing import Iterable

import typescript
from candidates import Finder, Mutant, parses, told_apart

WEFT, WASM, NATIVE, REMOTE = (
    "packages/weft/src/weft",
    "wasm/src/weft_wasm",
    "native/src/weft_native",
    "packages/weft-remote/src/weft_remote",
)
# name -> patterns of files; a file belongs to the first that it matches
STRATA = {
    "the wire: codec, client, host": [
        f"{WEFT}/serialization/**/*.py",
        f"{WEFT}/core/wire.py",
        f"{WEFT}/transforms/portable.py",
        f"{WEFT}/core/verify.py",
        f"{WEFT}/export/artifact.py",
        f"{REMOTE}/**/*.py",
        f"{NATIVE}/host/**/*.py",
    ],
    "core": [f"{WEFT}/core/**/*.py", f"{WEFT}/symbolic/**/*.py"],
    "primitives": [f"{WEFT}/primitives/**/*.py"],
    "transforms": [f"{WEFT}/transforms/**/*.py"],
    "higher-order primitives, decompositions, effects": [
        f"{WEFT}/higher_order/**/*.py",
        f"{WEFT}/decompositions/**/*.py",
        f"{WEFT}/effects/**/*.py",
    ],
    "lowering to XLA": [f"{NATIVE}/lower/**/*.py"],
    "lowering to loop IR": [f"{WASM}/lower/**/*.py", f"{WASM}/routines/**/*.py", f"{WASM}/elementary/**/*.py"],
    "emitter of Wasm": [f"{WASM}/emit_wasm/**/*.py", f"{WASM}/binary/**/*.py"],
    "emitter of WGSL": [f"{WASM}/emit_wgsl/**/*.py"],
    "runtimes": [
        f"{WEFT}/runtime/**/*.py",
        f"{WASM}/artifact.py",
        f"{WASM}/runtimes/**/*.py",
        f"{WASM}/backends/**/*.py",
        f"{NATIVE}/*.py",
    ],
    "passes over loop IR": [f"{WASM}/**/*.py"],
    "runtime of pages (TypeScript)": ["wasm/runtime/src/*.ts"],
}


def mutants_of(root: pathlib.Path) -> dict[str, list[Mutant]]:
    """Every mutant of every stratum, in the order of files and places."""
    taken: set[pathlib.Path] = set()
    found: dict[str, list[Mutant]] = {}
    for name, patterns in STRATA.items():
        if any(p.endswith(".ts") for p in patterns):
            found[name] = list(told_apart(typescript.find_all(root, patterns)))
            continue
        files = sorted({f for p in patterns for f in root.glob(p)} - taken)
        taken.update(files)
        found[name] = list(told_apart(m for f in files for m in Finder(str(f.relative_to(root)), f.read_text()).found))
    return found


def sample(root: pathlib.Path, count: int, seed: int) -> dict[str, list[Mutant]]:
    """`count` mutants, as many from each stratum, and in a stratum evenly over operators and then files; no two at
    one place.
    """
    everything = mutants_of(root)
    each = -(-count // len(everything))
    return {name: _evenly(root, found, each, seed) for name, found in everything.items()}


def _evenly(root: pathlib.Path, found: list[Mutant], count: int, seed: int) -> list[Mutant]:
    by_operator: dict[str, list[Mutant]] = collections.defaultdict(list)
    for m in found:
        by_operator[m.operator].append(m)
    uses: collections.Counter[str] = collections.Counter()
    chosen: list[Mutant] = []
    place = lambda m: hashlib.sha256(f"{seed} {m.edit}".encode()).digest()
    queues = {name: sorted(group, key=place) for name, group in sorted(by_operator.items())}
    while len(chosen) < count and queues:
        for name in list(queues):
            # stable: by hash among files that are used as often
            queue = sorted(queues[name], key=lambda m: uses[m.file])
            while queue and (
                any(_overlap(queue[0], c) for c in chosen)
                or not queue[0].file.endswith(".ts")
                and not parses(queue[0], (root / queue[0].file).read_bytes())
            ):
                queue.pop(0)
            if not queue:
                del queues[name]
                continue
            chosen.append(queue.pop(0))
            uses[chosen[-1].file] += 1
            queues[name] = queue
            if len(chosen) == count:
                break
    return chosen


def _overlap(a: Mutant, b: Mutant) -> bool:
    """Whether the places of two mutants can't be marked in one copy of a file."""
    return (
        a.file == b.file
        and min(a.start, a.mark[0]) <= max(b.end, b.mark[1])
        and min(b.start, b.mark[0]) <= max(a.end, a.mark[1])
    )


def numbered(strata: dict[str, list[Mutant]]) -> Iterable[tuple[int, str, Mutant]]:
    """(number, stratum, mutant) of all."""
    k = 0
    for name, found in strata.items():
        for m in found:
            yield k, name, m
            k += 1


def digest(strata: dict[str, list[Mutant]]) -> str:
    """Tells one sample from another."""
    return hashlib.sha256("\n".join(m.key for _, _, m in numbered(strata)).encode()).hexdigest()[:16]
