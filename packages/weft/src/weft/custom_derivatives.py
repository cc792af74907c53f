"""Functions that say themselves how they are differentiated, and what their rules need."""

from .api.tracing import closure_convert as closure_convert
from .higher_order.custom_jvp import (
    SymbolicZero as SymbolicZero,
    custom_jvp as custom_jvp,
    custom_jvp_call_p as custom_jvp_call_p,
)
from .higher_order.custom_vjp import (
    CustomVJPPrimal as CustomVJPPrimal,
    custom_gradient as custom_gradient,
    custom_vjp as custom_vjp,
    custom_vjp_call_p as custom_vjp_call_p,
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
    remat_opt_p as remat_opt_p,
    zero_from_primal as zero_from_primal,
)
from .higher_order.linear_call import linear_call as linear_call
