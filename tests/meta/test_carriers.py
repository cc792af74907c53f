"""Primitives that carry jaxprs: each says how on itself, what it says is true, and nothing knows them by name."""

import ast
import pathlib

import pytest
import weft
import weft.numpy as jnp
from weft import lax
from weft.core.carries import CARRY, REST, Runs
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from weft.core.carries import get
from weft.core.primitive import registry
from weft.export import language  # noqa: F401  all primitives that programs may have
from weft.testing.cases import cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = [ROOT / "packages/weft/src", ROOT / "packages/weft-remote/src", ROOT / "native/src", ROOT / "wasm/src"]
MODULES = {
    ".".join(file.relative_to(source).with_suffix("").parts): file
    for source in SOURCES
    for file in sorted(source.rglob("*.py"))
}
CARRIERS = {name for name, p in registry.items() if p.carries is not None}

# names ---------------------------------------------------------------------------------------------------------------

# What may know them: names for users, and the lowering of loops and choices in the compiler of kernels, whose IR has
# nodes of the same names.
MAY = {
    "weft_wasm.lower.fuse": "which nodes take arrays in memory",
    "weft_wasm.lower.kernels": "branches that take blocks of arrays",
    "weft_wasm.lower.loop_nests": "branches that share storage",
    "weft_wasm.lower.program": "kinds of fused groups",
    "weft_wasm.contents": "steps of artifacts",
    "weft_wasm.runtimes.wgpu_device": "steps of artifacts",
}
FOR_USERS = ("weft.lax", "weft.numpy", "weft_wasm.ir", "weft_wasm.passes", "weft_wasm.routines", "weft_wasm.emit_")


def names_in(tree):
    """(line, name) where the name of such a primitive is compared with, or is a key."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                keys = [c for part in (node.left, *node.comparators) for c in ast.walk(part)]
            case ast.Dict():
                keys = node.keys
            case ast.Subscript(slice=key):
                keys = [key]
            case ast.Call(func=ast.Attribute(attr="get" | "pop" | "setdefault"), args=[key, *_]):
                keys = [key]
            case ast.Call(func=ast.Name(id="frozenset" | "set"), args=[key]):
                keys = ast.walk(key)
            case ast.Assign(value=ast.Tuple(elts=keys) | ast.Set(elts=keys), targets=[ast.Name(id=name)]):
                keys = [] if name == "__all__" else keys
            case _:
                continue
        yield from [(k.lineno, k.value) for k in keys if isinstance(k, ast.Constant) and k.value in CARRIERS]


@pytest.mark.parametrize("module", [m for m in MODULES if not m.startswith(FOR_USERS)])
def test_no_module_knows_them_by_name(module):
    found = sorted(set(names_in(ast.parse(MODULES[module].read_text()))))
    if module not in MAY:
        assert not found, f"{module} asks for primitives by name; read `primitive.carries`, or give them a rule"


def test_the_names_are_found():
    for text in (
        'name == "scan"',
        '_CALLS = ("jit", "x")',
        'RULES = {"cond": f}',
        'f.get("while")',
        'name in ("jit",)',
    ):
        assert list(names_in(ast.parse(text))), text


@pytest.mark.parametrize("module", MAY)
def test_those_that_may_do(module):
    assert list(names_in(ast.parse(MODULES[module].read_text())))


# descriptions --------------------------------------------------------------------------------------------------------


def exported(x):
    made = weft.export.export(weft.jit(lambda x: jnp.sin(x) * 2))(weft.ShapeDtypeStruct((3,), "float32"))
    return made.call(x)


def on_parts(x):
    mesh = weft.sharding.Mesh([weft.devices()[0]], ("i",))
    return weft.shard_map(lambda x: x * 2, mesh=mesh, in_specs=weft.P("i"), out_specs=weft.P("i"))(x)


@weft.custom_vjp
def saved(x):
    return jnp.sin(x)


saved.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda res, ct: (res * ct,), optimize_remat=True)
X = jnp.arange(3.0)
OTHERS = {
    "exported": (exported, (X,)),
    "shard_map": (on_parts, (X,)),
    "optimize_remat": (lambda x: weft.vjp(saved, x)[0], (X,)),
    "constants": (lambda x: lax.fori_loop(0, x.size, lambda i, c: c + weft.jit(lambda y: y * X)(c), x), (X,)),
}
IN_REVERSE = ("custom_vjp_call", "scan", "cond", "remat2", "custom_linear_solve", "jit")


def programs():
    for case in cases():
        if case.primitive in CARRIERS:
            yield case.id, case.fun, case.sample()
    for name, (fun, args) in OTHERS.items():
        yield name, fun, args


def equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for sub in subjaxprs(eqn.params):
            yield from equations(sub)


def found_in(fun, args):
    """The equations that carry jaxprs in a program and in its derivatives."""
    inexact = [i for i, x in enumerate(args) if jnp.issubdtype(jnp.asarray(x).dtype, jnp.inexact)]
    traced = [weft.make_jaxpr(fun)(*args)]
    if inexact:
        total = lambda *xs: sum(jnp.sum(jnp.real(leaf)) for leaf in weft.tree.leaves(fun(*xs)))
        try:
            traced.append(weft.make_jaxpr(weft.grad(total, inexact))(*args))
        except (TypeError, ValueError, NotImplementedError):
            pass  # a row without a derivative; the others have one
    return [e for closed in traced for e in equations(closed.jaxpr) if any(True for _ in subjaxprs(e.params))]


EQUATIONS = [(f"{name}: {e.primitive.name}", e) for name, fun, args in programs() for e in found_in(fun, args)]


def test_each_is_seen():
    assert CARRIERS <= {eqn.primitive.name for _, eqn in EQUATIONS}


def same(a, b):
    return (getattr(a, "shape", None), getattr(a, "dtype", None)) == (
        getattr(b, "shape", None),
        getattr(b, "dtype", None),
    )


def alike(xs, ys):
    return len(xs) == len(ys) and all(map(same, xs, ys))


def jaxprs_at(params, path):
    value = get(params, path)
    values = value if isinstance(value, (tuple, list)) else [value]
    return [v.jaxpr if isinstance(v, ClosedJaxpr) else v for v in values if isinstance(v, (Jaxpr, ClosedJaxpr))]


@pytest.mark.parametrize("eqn", [e for _, e in EQUATIONS], ids=[f"{i} {name}" for i, (name, _) in enumerate(EQUATIONS)])
def test_what_it_says_is_true(eqn):
    carries, params, avals = eqn.primitive.carries, eqn.params, [a.aval for a in eqn.invars]
    assert carries is not None, f"{eqn.primitive} has jaxprs among its parameters: give it `carries`"
    named = [j for path in (*carries.takes, *carries.aside) for j in jaxprs_at(params, path)]
    assert sorted(map(id, named)) == sorted(map(id, subjaxprs(params)))
    programs = carries.programs(params, len(avals))
    sizes = carries.sizes(params, len(avals)).values()
    assert len(programs) > 0 and sum(sizes) == len(avals) and set(sizes) <= set(range(len(avals) + 1))
    if carries.runs is Runs.COMBINING:
        (combine,) = programs
        scalars = [a.update(shape=()) for a in avals[: len(avals) // 2]]
        assert alike(combine.closed.in_avals, [*scalars, *scalars])
        return
    for program in programs:
        arguments = program.arguments(avals)
        whole = len(arguments) - program.rows
        rows = [a.update(shape=a.shape[1:]) for a in arguments[whole:]]
        if carries.runs is not Runs.ON_PARTS:
            assert alike(program.closed.in_avals, [*arguments[:whole], *rows])
        assert len(program.closed.in_avals) == len(arguments)
    results = [v.aval for v in eqn.outvars]
    if carries.runs in (Runs.ONCE, Runs.CHOSEN):
        for program in programs:
            assert alike(program.closed.out_avals, results)
    if carries.runs is Runs.REPEATED:
        *tests, body = programs
        carry = carries.split(params, avals)[CARRY]
        assert alike(body.closed.out_avals[: len(carry)], carry)
        assert alike(results[: len(carry)], carry)
        assert all(t.closed.out_avals[0].dtype == bool for t in tests) and bool(tests) == carries.has_condition
    if carries.policy is not None:
        assert carries.policy in params
    if carries.callee is not None:
        assert isinstance(params[carries.callee], str)


@pytest.mark.parametrize("name", sorted(CARRIERS))
def test_operands_can_lead_each_group_that_is_counted(name):
    eqn = next(e for _, e in EQUATIONS if e.primitive.name == name)
    carries, params, operands = eqn.primitive.carries, eqn.params, list(eqn.invars)
    for group, count in carries.groups.items():
        if isinstance(count, int):
            continue
        new, more = carries.insert(params, operands, {group: ["a", "b"]})
        before, after = carries.split(params, operands), carries.split(new, more)
        assert after == {**before, group: ["a", "b", *before[group]]}
        assert (
            count != REST
            or not carries.each
            or all(len(new[key]) == len(more) for key in carries.each if isinstance(new[key], tuple))
        )
