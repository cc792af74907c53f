"""Makes a failing program as small as possible while it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from .tree import Block, Program, Step, Value

Fails = Callable[[Program], bool]


def shrink(program: Program, fails: Fails, most: int = 400) -> Program:
    """Tries one change after the other, at most so many, and keeps those after which it still fails."""
    trim = trimmed if fails(trimmed(program)) else lambda p: p  # it may be that what nothing uses is what fails
    program, tries, again = trim(program), 0, True
    while again:
        again = False
        for smaller in map(trim, candidates(program)):
            tries += 1
            if tries > most:
                return program
            if fails(smaller):
                program, again = smaller, True
                break
    return program


def candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, the much smaller ones first."""
    for k in range(len(program.form)):
        yield replace(program, form=program.form[:k] + program.form[k + 1 :])
    block = program.block
    if len(block.results) > 1:
        for result in block.results:
            yield replace(program, block=replace(block, results=(result,), gives=(1,)))
    for smaller in smaller_blocks(block):
        yield replace(program, block=smaller)
    if program.donated:
        yield replace(program, donated=())
    for k, a in enumerate(program.args):
        for simpler in (replace(a, same_as=None), replace(a, layout="plain"), replace(a, numbers="whole")):
            if simpler != a:
                yield replace(program, args=(*program.args[:k], simpler, *program.args[k + 1 :]))


def smaller_blocks(block: Block) -> Iterator[Block]:
    """A function with a step less, or with a smaller one."""
    steps = block.steps
    for k in reversed(range(len(steps))):
        for simpler in stand_ins(steps[k], visible(block, k)):
            yield replace(block, steps=(*steps[:k], *simpler, *steps[k + 1 :]))
    for k in reversed(range(len(steps))):
        for j, inner in enumerate(steps[k].blocks):
            for smaller in smaller_blocks(inner):
                blocks = (*steps[k].blocks[:j], smaller, *steps[k].blocks[j + 1 :])
                yield replace(block, steps=(*steps[:k], replace(steps[k], blocks=blocks), *steps[k + 1 :]))
    for k, r in enumerate(block.results):  # a parameter instead of what was computed
        for p in block.params:
            if p.type == r.type and p is not r and r not in block.params:
                yield replace(block, results=(*block.results[:k], p, *block.results[k + 1 :]))


def visible(block: Block, k: int) -> list[Value]:
    return [*block.params, *[v for s in block.steps[:k] for v in s.results]]


def stand_ins(step: Step, before: list[Value]) -> Iterator[tuple[Step, ...]]:
    """What gives values of the same types with less: operands and earlier values, or ones."""
    if step.text == "{0}" or step.text.startswith(ONES) or step.text == ONE_KEY:
        return
    one_by_one = []
    for v in step.results:
        same = [w for w in (*step.operands, *reversed(before)) if w.type == v.type]
        one_by_one.append(same[0] if same else None)
    if any(one_by_one):
        yield tuple(Step((v,), "{0}", (w,)) if w else ones(v) for v, w in zip(step.results, one_by_one))
    yield tuple(ones(v) for v in step.results)


ONES, ONE_KEY = "jnp.ones(", "weft.random.key(1)"


def ones(v: Value) -> Step:
    if v.type.kind == "k":
        return Step((v,), ONE_KEY)
    return Step((v,), f"{ONES}{v.type.shape}, {v.type.dtype!r})")


def trimmed(program: Program) -> Program:
    """Without steps and arguments that nothing uses, and without copies."""
    block = without_unused(without_copies(program.block, {}))
    used = names_in(block)
    keep = [k for k, p in enumerate(block.params) if p.name in used or any(a.same_as == k for a in program.args)]
    if not keep:
        keep = [0]
    place = {old: new for new, old in enumerate(keep)}
    args = tuple(replace(program.args[k], same_as=place.get(program.args[k].same_as)) for k in keep)
    donated = tuple(place[k] for k in program.donated if k in place)
    return replace(
        program, args=args, donated=donated, block=replace(block, params=tuple(block.params[k] for k in keep))
    )


def names_in(block: Block) -> set[str]:
    """What is used anywhere inside, whether by name in a text or as an operand."""
    found = {r.name for r in block.results}
    for step in block.steps:
        found.update(v.name for v in step.operands)
        found.update(word for word in step.text.replace("}", " ").split() if word.startswith("v"))
        for inner in step.blocks:
            found |= names_in(inner)
    return found


def without_unused(block: Block) -> Block:
    while True:
        used = names_in(block)
        steps = tuple(
            replace(s, blocks=tuple(map(without_unused, s.blocks)))
            for s in block.steps
            if any(v.name in used for v in s.results)
        )
        if len(steps) == len(block.steps):
            return replace(block, steps=steps)
        block = replace(block, steps=steps)


def without_copies(block: Block, names: dict[Value, Value]) -> Block:
    """Values that are others stand for themselves no longer."""
    names, steps = dict(names), []
    for step in block.steps:
        operands = tuple(names.get(v, v) for v in step.operands)
        if step.text == "{0}":
            names[step.results[0]] = operands[0]
            continue
        steps.append(replace(step, operands=operands, blocks=tuple(without_copies(b, names) for b in step.blocks)))
    return replace(block, steps=tuple(steps), results=tuple(names.get(v, v) for v in block.results))
