"""The reference backend: a slow and obvious interpreter on NumPy, the oracle of the other backends."""
from __future__ import annotations

from typing import Sequence

from ..avals import ShapedArray
from ..core.jaxpr import ClosedJaxpr, Jaxpr, Literal, subjaxprs
from ..core.primitive import Unsupported
from ..errors import BackendError
from ..host import np, require_numpy
from ..transforms.stage import stage_closed
from .array import BufferArray
from .backend import CompileOptions
from .device import register_backend


class ReferenceDevice:
    """The one device of the reference backend."""
    id, platform, process_index, device_kind = 0, "reference", 0, "NumPy"

    def __init__(self, backend):
        self.backend = backend

    def __repr__(self):
        return "ReferenceDevice(id=0)"


class ReferenceBackend:
    """Evaluates jaxprs equation by equation with the primitives' reference rules."""
    name, platforms = "reference", ("reference",)

    def __init__(self):
        require_numpy("the reference backend")
        self._devices = [ReferenceDevice(self)]

    def devices(self, platform: str | None = None) -> list:
        return self._devices

    def put(self, value, aval: ShapedArray, device, committed: bool) -> BufferArray:
        return BufferArray(aval, np.array(value, aval.dtype), device, committed)

    def read(self, handle, nbytes: int):
        return np.ascontiguousarray(handle)

    def release(self, handle) -> None:
        pass

    def is_ready(self, handle) -> bool:
        return True

    def wait(self, handle) -> None:
        pass

    def compile(self, jaxpr: Jaxpr, device, options: CompileOptions) -> "ReferenceExecutable":
        return ReferenceExecutable(self, jaxpr, device)


class ReferenceExecutable:
    """A jaxpr, run by the interpreter."""

    def __init__(self, backend: ReferenceBackend, jaxpr: Jaxpr, device):
        self.backend, self.jaxpr, self.device = backend, jaxpr, device

    def execute(self, args: Sequence[BufferArray]) -> list[BufferArray]:
        outs = interpret(self.jaxpr, [x._live() for x in args])
        return [BufferArray(v.aval, o, self.device) for v, o in zip(self.jaxpr.outvars, outs)]

    def as_text(self, stage: str | None = None) -> str:
        if stage not in (None, "jaxpr"):
            raise ValueError(f"the reference backend shows programs as 'jaxpr' only, not {stage!r}.")
        return str(self.jaxpr)

    def cost_analysis(self) -> dict:
        return {}

    def memory_analysis(self) -> dict:
        return {}


def interpret(jaxpr: Jaxpr, args: Sequence) -> list:
    """The results of a jaxpr (without constvars) for NumPy arguments."""
    env = dict(zip(jaxpr.invars, args))
    read = lambda a: np.asarray(a.val, a.aval.dtype) if type(a) is Literal else env[a]
    for eqn in jaxpr.eqns:
        values = [read(a) for a in eqn.invars]
        outs = _evaluate(eqn, values)
        for var, out in zip(eqn.outvars, outs):
            out = np.asarray(out, var.aval.dtype)
            assert out.shape == var.aval.shape, (eqn.primitive, out.shape, var.aval)
            env[var] = out
    return [read(a) for a in jaxpr.outvars]


def _evaluate(eqn, values) -> list:
    primitive, params = eqn.primitive, eqn.params
    if primitive.name == "scan":
        return _scan(values, **params)
    if primitive.name == "while":
        return _while(values, **params)
    if primitive.name == "cond":
        index, *ops = values
        branches = params["branches"]
        return _closed(branches[min(max(int(index), 0), len(branches) - 1)], ops)
    can = primitive.reference is not None and not isinstance(primitive.reference, Unsupported)
    if can and not any(True for _ in subjaxprs(params)):
        out = primitive.reference(*values, **params)
        return out if primitive.multiple_results else [out]
    if primitive.decompose is not None:
        simpler = eqn.params["jaxpr"] if primitive.name == "jit" else None
        if simpler is None:
            as_list = (lambda *xs: list(primitive.decompose(*xs, **params))) if primitive.multiple_results else (lambda *xs: [primitive.decompose(*xs, **params)])
            simpler = stage_closed(as_list, [a.aval for a in eqn.invars])
        return _closed(simpler, values)
    if can:
        out = primitive.reference(*values, **params)
        return out if primitive.multiple_results else [out]
    why = primitive.reference.why if isinstance(primitive.reference, Unsupported) else "it has no reference rule"
    raise BackendError(f"the reference backend can't run {primitive.name}: {why} (at {eqn.source_info}).")


def _closed(closed: ClosedJaxpr, values) -> list:
    from_consts = [np.asarray(c._host() if hasattr(c, "_host") else c) for c in closed.consts]
    jaxpr = closed.jaxpr
    return interpret(jaxpr.replace(constvars=[], invars=jaxpr.constvars + jaxpr.invars), [*from_consts, *values])


def _scan(values, jaxpr, length, reverse, unroll, num_consts, num_carry):
    consts, carry, xs = values[:num_consts], values[num_consts:num_consts + num_carry], values[num_consts + num_carry:]
    rows: list = [None] * length
    for i in (reversed(range(length)) if reverse else range(length)):
        outs = _closed(jaxpr, [*consts, *carry, *[x[i] for x in xs]])
        carry, rows[i] = outs[:num_carry], outs[num_carry:]
    ys = [np.stack([r[k] for r in rows]) if length else np.zeros((0, *a.shape), a.dtype) for k, a in enumerate(jaxpr.out_avals[num_carry:])]
    return [*carry, *ys]


def _while(values, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    cond_consts, body_consts = values[:cond_nconsts], values[cond_nconsts:cond_nconsts + body_nconsts]
    carry = values[cond_nconsts + body_nconsts:]
    while bool(_closed(cond_jaxpr, [*cond_consts, *carry])[0]):
        carry = _closed(body_jaxpr, [*body_consts, *carry])
    return carry


register_backend("reference", ReferenceBackend)
