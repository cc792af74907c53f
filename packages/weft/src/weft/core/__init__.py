"""Primitives, traces and jaxprs: the foundation of all other parts of weft."""

from ..base.avals import AbstractToken as AbstractToken, AbstractValue as AbstractValue, ShapedArray as ShapedArray
from ..base.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from ..symbolic.dims import (
    is_constant_shape as is_constant_shape,
    is_symbolic_dim as is_symbolic_dim,
    max_dim as max_dim,
    min_dim as min_dim,
)
from . import pretty as _pretty
from .jaxpr import (
    Atom as Atom,
    ClosedJaxpr as ClosedJaxpr,
    DropVar as DropVar,
    Jaxpr as Jaxpr,
    JaxprEqn as JaxprEqn,
    Literal as Literal,
    Var as Var,
    eval_jaxpr as eval_jaxpr,
    jaxpr_as_fun as jaxpr_as_fun,
)
from .primitive import Primitive as Primitive
from .trace import Trace as Trace, Tracer as Tracer, get_aval as get_aval
