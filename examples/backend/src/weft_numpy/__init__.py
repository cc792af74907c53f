"""A backend that compiles each program to one Python function on NumPy arrays.

It is an example: docs/backends.md goes through it. `weft.jit(f).lower(x).compile().as_text()` shows what it makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Callable

import numpy as np
from weft.base import dtypes
from weft.base.avals import ShapedArray, array_aval
from weft.core.interpret import interpret
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from weft.errors import BackendError
from weft.runtime.array import BufferArray
from weft.runtime.backend import Capabilities, CompileOptions
from weft.transforms.stage import stage_closed

# Those that NumPy computes with itself: the others are of ml_dtypes.
DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)


class NumpyDevice:
    """One of the two devices, which share the machine's memory: a place, and nothing else."""

    platform, process_index, device_kind = "numpy", 0, f"NumPy {np.__version__}"

    def __init__(self, backend: NumpyBackend, id: int):
        self.backend, self.id = backend, id

    def __repr__(self) -> str:
        return f"NumpyDevice(id={self.id})"


class NumpyBackend:
    """Arrays are NumPy's, behind handles; programs are Python functions."""

    name, platforms = "numpy", ("numpy",)

    def __init__(self) -> None:
        self.capabilities = Capabilities(dtypes=DTYPES, branches_of=("cpu",))
        self._devices = [NumpyDevice(self, k) for k in range(2)]

    def devices(self, platform: str | None = None) -> list[NumpyDevice]:
        if platform not in (None, "numpy"):
            raise BackendError(f"the numpy backend has no devices of platform {platform!r}; its platform is 'numpy'.")
        return self._devices

    def put(self, value: Any, aval: ShapedArray, device: NumpyDevice, committed: bool) -> BufferArray:
        check_dtype(aval)
        # a copy: the host's memory may change
        return BufferArray(aval, np.array(value, aval.dtype), device, committed)

    def compile(self, jaxpr: Jaxpr, device: NumpyDevice, options: CompileOptions) -> NumpyExecutable:
        return NumpyExecutable(jaxpr, device, Source(jaxpr, options.name))

    # What a BufferArray asks about its handle. Programs have run when they return, so all arrays are ready.

    def read(self, handle: Any, nbytes: int) -> Any:
        return np.ascontiguousarray(handle)

    def release(self, handle: Any) -> None:
        """NumPy frees what nothing refers to any more."""

    def is_ready(self, handle: Any) -> bool:
        return True

    def wait(self, handle: Any) -> None:
        pass


class NumpyExecutable:
    """A compiled program, for one device."""

    def __init__(self, jaxpr: Jaxpr, device: NumpyDevice, source: Source):
        self.jaxpr, self.device, self.source, self.function = jaxpr, device, source, source.function()
        self.out_avals = [array_aval(v.aval) for v in jaxpr.outvars]

    def execute(self, args: Sequence[BufferArray]) -> list[BufferArray]:
        with np.errstate(all="ignore"):  # 1 / 0 is infinity, and no warning
            outs = self.function(*[x._live() for x in args])
        committed = any(x.committed for x in args)
        return [BufferArray(a, np.asarray(x, a.dtype), self.device, committed) for a, x in zip(self.out_avals, outs)]

    def as_text(self, stage: str | None = None) -> str:
        if stage not in (None, "python", "jaxpr"):
            raise ValueError(f"the numpy backend shows programs as 'python' or 'jaxpr', not {stage!r}.")
        return str(self.jaxpr) if stage == "jaxpr" else "\n".join(self.source.lines)

    def cost_analysis(self) -> dict[str, Any]:
        return {"lines": len(self.source.lines)}

    def memory_analysis(self) -> dict[str, Any]:
        size = lambda atoms: sum(v.aval.size * dtypes.itemsize(v.aval.dtype) for v in atoms)
        return {"argument_size_in_bytes": size(self.jaxpr.invars), "output_size_in_bytes": size(self.jaxpr.outvars)}


def check_dtype(aval: Any, where: str = "") -> None:
    if dtypes.name(aval.dtype) not in DTYPES:
        raise BackendError(
            f"the numpy backend has no arrays of dtype {dtypes.name(aval.dtype)}; convert to another dtype first, or"
            f" use another platform.{where}"
        )


# primitive -> what is written for it, with the operands in braces. NumPy's ufuncs keep the dtypes that jaxprs have.
SAME = "sign floor ceil exp exp2 expm1 log1p log sin cos tan sinh cosh tanh sqrt cbrt conj abs square"
OPERATORS = "add + sub - mul * add_any + pow ** and & or | xor ^ eq == ne != lt < le <= gt > ge >="
EXPRESSIONS = {
    **{name: f"np.{name}({{}})" for name in SAME.split()},
    **{f"a{name}": f"np.arc{name}({{}})" for name in "sin cos tan sinh cosh tanh".split()},
    **{name: f"{{}} {sign} {{}}" for name, sign in zip(OPERATORS.split()[::2], OPERATORS.split()[1::2])},
    **{"neg": "-{}", "not": "~{}", "real": "{}.real", "imag": "{}.imag", "copy": "{}"},
    **{"is_finite": "np.isfinite({})", "atan2": "np.arctan2({}, {})", "nextafter": "np.nextafter({}, {})"},
}


# primitive -> its function, made for the parameters of one equation
def cond(eqn: JaxprEqn) -> Callable[..., Any]:
    branches = [compiled(b) for b in eqn.params["branches"]]
    return lambda index, *operands: branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def while_(eqn: JaxprEqn) -> Callable[..., Any]:
    n, m = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    more, body = compiled(eqn.params["cond_jaxpr"]), compiled(eqn.params["body_jaxpr"])

    def run(*args: Any) -> Sequence[Any]:
        of_cond, of_body, state = args[:n], args[n : n + m], args[n + m :]
        while more(*of_cond, *state)[0]:
            state = body(*of_body, *state)
        return state

    return run


FUNCTIONS: dict[str, Callable[[JaxprEqn], Callable[..., Any]]] = {
    "cond": cond,
    "while": while_,
    "jit": lambda eqn: compiled(eqn.params["jaxpr"]),
}


def function_of(eqn: JaxprEqn) -> Callable[..., Any]:
    """What computes an equation's results: our own, or what its primitive decomposes into, or the reference rule of
    its primitive.
    """
    primitive, params = eqn.primitive, eqn.params
    if primitive.name in FUNCTIONS:
        return FUNCTIONS[primitive.name](eqn)
    decompose = primitive.decompose
    if decompose is not None and not primitive.basic:
        several = primitive.multiple_results
        parts = lambda *xs: list(decompose(*xs, **params)) if several else [decompose(*xs, **params)]
        made = compiled(stage_closed(parts, [a.aval for a in eqn.invars]))
        return made if several else lambda *xs: made(*xs)[0]
    invars, outvars = [Var(a.aval) for a in eqn.invars], [Var(v.aval) for v in eqn.outvars]
    alone = Jaxpr([], invars, outvars, [eqn.replace(invars=invars, outvars=outvars)])
    return (lambda *xs: interpret(alone, xs)) if primitive.multiple_results else lambda *xs: interpret(alone, xs)[0]


class Source:
    """The text of a function for a jaxpr, a line for each equation, and the objects that it refers to."""

    def __init__(self, jaxpr: Jaxpr, name: str):
        self.names: dict[Var, str] = {}
        self.globals: dict[str, Any] = {"np": np}
        given = ", ".join(self.new(v) for v in jaxpr.invars)
        self.lines = [
            f"def program({given}):  # {name}",
            *[f"    {line}" for eqn in jaxpr.eqns for line in self.equation(eqn)],
            f"    return [{', '.join(map(self.read, jaxpr.outvars))}]",
        ]

    def new(self, var: Var) -> str:
        check_dtype(var.aval)
        return self.names.setdefault(var, f"v{len(self.names)}")

    def read(self, atom: Any) -> str:
        if not isinstance(atom, Literal):
            return self.names[atom]
        return self.refer("c", np.asarray(atom.val, atom.aval.dtype))

    def refer(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.globals)}"
        self.globals[name] = value
        return name

    def equation(self, eqn: JaxprEqn) -> Iterator[str]:
        operands, name = [self.read(a) for a in eqn.invars], eqn.primitive.name
        for var in eqn.outvars:
            check_dtype(var.aval, f"\n  at {eqn.source_info}")
        if name in EXPRESSIONS:
            value = EXPRESSIONS[name].format(*operands)
        else:
            value = f"{self.refer(name.replace('-', '_') + '_', function_of(eqn))}({', '.join(operands)})"
        unpacked = "," if eqn.primitive.multiple_results and len(eqn.outvars) == 1 else ""
        yield (f"{', '.join(map(self.new, eqn.outvars))}{unpacked} = {value}" if eqn.outvars else value)

    def function(self) -> Callable[..., list[Any]]:
        scope = dict(self.globals)
        exec("\n".join(self.lines), scope)
        return scope["program"]


def compiled(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A jaxpr inside a program as a function."""
    jaxpr = closed.jaxpr.replace(constvars=[], invars=[*closed.jaxpr.constvars, *closed.jaxpr.invars])
    function, consts = Source(jaxpr, "inner").function(), closed.consts
    return lambda *args: function(*map(np.asarray, consts), *args)
