"""Parameters of public functions, constructors and methods are jax's, with their kinds and defaults, but for those
listed here with a reason.

jax's are recorded in names.json (`make_names.py`).
"""

import ast
import importlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

import weft
import weft.numpy as jnp

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import signatures
from platforms import need

NAMES = json.loads((HERE / "names.json").read_text())
VERSION = NAMES.pop("version")

# Differences that are meant, by reason.
DELIBERATE = {
    "it also makes decorators: checkpoint(policy=…)(f); and there is one function of this kind, whatever its name": (
        "jax.checkpoint",
        "jax.remat",
    ),
    "None says that nothing was given": ("jax.jit",),
    "it names its arguments": (
        "jax.lax.random_gamma_grad",
        "jax.NamedSharding.update",
        "jax.sharding.NamedSharding.update",
    ),
    "it is called without a value to learn that it needs one, as the other guards are": ("jax.transfer_guard",),
    "all samplers say how their result lies over devices": (
        "jax.random.double_sided_maxwell",
        "jax.random.weibull_min",
    ),
    "a method takes what the function of its name in weft.numpy takes": tuple(
        f"jax.{kind}.{method}"
        for kind in ("Array", "numpy.ndarray")
        for method in ("argsort", "dot", "reshape", "std", "var")
    ),
    "an exported program may have symbolic sizes": ("jax.export.Exported.mlir_module",),
    "there are several stages to show": ("jax.stages.Compiled.as_text",),
    "what jax takes as **kwargs has a name": ("jax.sharding.AbstractMesh.update",),
    "specs have no methods for types of cotangents": tuple(
        f"jax.{kind}.{method}"
        for kind in ("P", "sharding.PartitionSpec")
        for method in ("to_ct_spec", "to_lo", "to_tangent_spec")
    ),
    "its constructor is for the library": (
        "jax.Ref",
        "jax.ref.Ref",
        "jax.debug.DebugEffect",
        "jax.debug.OrderedDebugEffect",
        "jax.export.Exported",
        "jax.experimental.checkify.Error",
        "jax.stages.Compiled",
        "jax.stages.Lowered",
        "jax.stages.Traced",
    ),
    "the library raises it, with a message": tuple(
        "jax.errors." + name
        for name in (
            "ConcretizationTypeError",
            "JAXIndexError",
            "JAXTypeError",
            "KeyReuseError",
            "NonConcreteBooleanIndexError",
            "TracerArrayConversionError",
            "TracerBoolConversionError",
            "TracerIntegerConversionError",
            "UnexpectedTracerError",
        )
    ),
    "the reference's memory is not shown": ("jax.Ref.unsafe_buffer_pointer", "jax.ref.Ref.unsafe_buffer_pointer"),
    "it is what jax's own traces ask of types": tuple(
        "jax.ref.AbstractRef." + name
        for name in (
            "at_least_vspace",
            "dec_rank",
            "inc_rank",
            "leading_axis_spec",
            "lo_ty",
            "lo_ty_qdd",
            "lower_val",
            "lower_val2",
            "normalize",
            "raise_val",
            "raise_val2",
            "shard",
            "str_short",
            "strip_weak_type",
            "to_ct_aval",
            "to_tangent_aval",
            "unshard",
            "update",
            "update_manual_axis_type",
            "update_weak_type",
            "vspace_add",
        )
    ),
    "weft has one compiler for kernels, which is promised one thing": ("jax.experimental.pallas.CompilerParams",),
    "blocks are cut where the kernel is called": ("jax.experimental.pallas.BlockSpec.to_block_mapping",),
    "it is a tuple": tuple(
        f"jax.experimental.pallas.Slice.{name}" for name in ("from_slice", "tree_flatten", "tree_unflatten")
    ),
    "errors are pytrees by registration": (
        "jax.experimental.checkify.Error.tree_flatten",
        "jax.experimental.checkify.Error.tree_unflatten",
    ),
}
MEANT = {name for names in DELIBERATE.values() for name in names}


def find(dotted: str):
    """weft's object for a name of jax; None where there is none."""
    found, parts = weft, dotted.split(".")
    for i, part in enumerate(parts[1:], 2):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(".".join(["weft", *parts[1:i]]))
            except ImportError:
                return None
    return found


def members(kind: type) -> type:
    """The class that has the public methods of a class."""
    return type(jnp.zeros(())) if kind is weft.Array else kind


def unordered(parameters: list[str] | None) -> list[str] | None:
    """A signature in which keyword-only parameters, whose order says nothing, are sorted."""
    first = parameters.index("*") + 1 if parameters is not None and "*" in parameters else None
    return parameters if first is None or parameters is None else [*parameters[:first], *sorted(parameters[first:])]


def differences() -> dict[str, tuple]:
    """name -> (jax's signature, ours, None where there is no such method) of what both have."""
    found = {}
    for module, names in NAMES.items():
        for name, (kind, theirs, *rest) in names.items():
            dotted = f"{module}.{name}"
            value = find(dotted) if kind in ("class", "function") else None
            if value is None:
                continue
            ours = signatures.parameters(value)
            if theirs is not None and unordered(theirs) != unordered(ours):
                found[dotted] = theirs, ours
            own = signatures.methods(members(value)) if rest and isinstance(value, type) else {}
            for method, wanted in rest[0].items() if own else ():
                if wanted is not None and unordered(own.get(method)) != unordered(wanted):
                    found[f"{dotted}.{method}"] = wanted, own.get(method)
    return found


@pytest.fixture(scope="module")
def found():
    return differences()


def test_signatures_are_those_of_jax(found):
    unknown = [
        (
            f"{name}({', '.join(theirs)}) is ({', '.join(ours)})"
            if ours is not None
            else f"{name}({', '.join(theirs)}) is not there, or has no signature"
        )
        for name, (theirs, ours) in found.items()
        if name not in MEANT
    ]
    assert not unknown, "\n".join(unknown)


def test_what_is_listed_as_different_is(found):
    assert not MEANT - set(found), f"these are as jax's: {sorted(MEANT - set(found))}"


def stubbed(function: ast.FunctionDef) -> list[str]:
    """The parameters of a method in a stub, without `self`, as `signatures.parameters` writes them."""
    given = function.args
    first = given.posonlyargs + given.args
    written = lambda argument, value: (
        argument.arg + ("" if value is None else "=" + signatures.default(ast.literal_eval(value)))
    )
    text = [written(a, v) for a, v in zip(first, [None] * (len(first) - len(given.defaults)) + given.defaults)][1:]
    text += [f"*{given.vararg.arg}"] if given.vararg else ["*"] if given.kwonlyargs else []
    text += [written(a, v) for a, v in zip(given.kwonlyargs, given.kw_defaults)]
    return text + ([f"**{given.kwarg.arg}"] if given.kwarg else [])


def test_the_stub_of_arrays_has_the_parameters_of_their_methods():
    stub = ast.parse((pathlib.Path(weft.__file__).parent / "base" / "array_members.pyi").read_text())
    (members_,) = [node for node in stub.body if isinstance(node, ast.ClassDef)]
    # others are jaxlib's own
    methods = {name: p for name, p in signatures.methods(members(weft.Array)).items() if p is not None}
    declared = {
        f.name: stubbed(f)
        for f in members_.body
        if isinstance(f, ast.FunctionDef)
        and not f.name.startswith("_")
        and not any(isinstance(d, ast.Name) and d.id == "property" for d in f.decorator_list)
    }
    assert not set(methods) - set(declared), f"the stub has no {sorted(set(methods) - set(declared))}"
    wrong = [
        f"{name}({', '.join(p)}) for ({', '.join(methods[name])})"
        for name, p in declared.items()
        if name in methods and p != methods[name]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.oracle
def test_the_record_is_that_of_jax():
    need("oracle")
    run = subprocess.run(
        [os.environ["WEFT_ORACLE_PYTHON"], HERE / "make_names.py", "-"], capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout) == {"version": VERSION, **NAMES}
