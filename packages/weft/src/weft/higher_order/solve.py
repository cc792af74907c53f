"""custom_linear_solve and custom_root: solutions of equations, with the derivatives that the equations define.

How a solution was found need not be differentiable: from A x = b follows A dx = db - dA x, and from f(x, p) = 0 follows
f_x dx = -f_p dp, each again a linear system.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Literal, NamedTuple, Sequence, TypeVar, overload

from ..base.annotations import PyTree
from ..base.avals import tangent_aval
from ..core.carries import REST, Carries, Runs
from ..core.jaxpr import eval_jaxpr
from ..core.primitive import AsDecomposed, Primitive, UndefinedPrimal, Zero
from ..core.wire import IS_OPENED
from ..core.trace import get_aval, is_array_like
from ..base.errors import at_user_line
from ..primitives.elementwise import neg, sub
from ..base.source_info import api_boundary
from ..transforms.batch import batch_jaxpr, to_front
from ..transforms.jvp import instantiate, jvp_flat, jvp_jaxpr
from ..transforms.linearize import linearize_flat
from ..transforms.transpose import transpose_jaxpr
from ..base.tree import PyTreeDef, tree_flatten, tree_unflatten
from .call import collective_names
from .common import avals_of, close, describe_mismatch, trace_open
from .custom_jvp import Rule, bind_custom_jvp

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.jaxpr import ClosedJaxpr
    from ..core.trace import Axis
    from ..core.types import Dims, Value

_Tree = TypeVar("_Tree")  # a pytree like the right-hand side,
_Aux = TypeVar("_Aux")  # and the solver's auxiliary results


class _LinearSolveTuple(NamedTuple):
    """A value for each of the four functions of a solve; those of the transposed system are None if it can't be
    solved.
    """

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transposed(self) -> "_LinearSolveTuple":
        return _LinearSolveTuple(self.vecmat, self.matvec, self.transpose_solve, self.solve)


custom_linear_solve_p = Primitive("custom_linear_solve", multiple_results=True, wire=IS_OPENED)


def _consts_of(args: Sequence[Any], lengths: _LinearSolveTuple) -> tuple[_LinearSolveTuple, list[Any]]:
    """The constants of each function, and the right-hand side."""
    groups, at = [], 0
    for n in lengths:
        groups.append(list(args[at : at + n]))
        at += n
    return _LinearSolveTuple(*groups), list(args[at:])


def _evaluate(*args: Value, const_lengths: _LinearSolveTuple, jaxprs: _LinearSolveTuple) -> list[Any]:
    consts, b = _consts_of(args, const_lengths)
    return eval_jaxpr(jaxprs.solve.jaxpr, jaxprs.solve.consts, *consts.solve, *b)


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, const_lengths: _LinearSolveTuple, jaxprs: _LinearSolveTuple
) -> tuple[Any, Any]:
    outs = custom_linear_solve_p.bind(*primals, const_lengths=const_lengths, jaxprs=jaxprs)
    (consts, b), (consts_t, b_t) = _consts_of(primals, const_lengths), _consts_of(tangents, const_lengths)
    x = outs[: len(b)]
    rhs = [instantiate(t) for t in b_t]
    if any(type(t) is not Zero for t in consts_t.matvec):
        both, nonzero = jvp_jaxpr(jaxprs.matvec, [*[type(t) is not Zero for t in consts_t.matvec], *[False] * len(x)])
        moved = iter(
            eval_jaxpr(
                both.jaxpr, both.consts, *consts.matvec, *x, *[t for t in consts_t.matvec if type(t) is not Zero]
            )[len(x) :]
        )
        rhs = [sub(r, next(moved)) if nz else r for r, nz in zip(rhs, nonzero)]
    elif all(type(t) is Zero for t in b_t):
        return outs, [Zero(tangent_aval(get_aval(o))) for o in outs]
    all_consts = primals[: sum(const_lengths)]
    x_t = custom_linear_solve_p.bind(*all_consts, *rhs, const_lengths=const_lengths, jaxprs=jaxprs)[: len(b)]
    return outs, [*x_t, *[Zero(tangent_aval(get_aval(o))) for o in outs[len(b) :]]]


def _transpose(
    cts: Sequence[Value], *args: Value, const_lengths: _LinearSolveTuple, jaxprs: _LinearSolveTuple
) -> list[Value | None]:
    consts, b = _consts_of(args, const_lengths)
    if any(type(c) is UndefinedPrimal for group in consts for c in group):
        raise NotImplementedError(
            "custom_linear_solve is linear in its right-hand side only: it can't be transposed with respect to"
            " values that matvec closes over."
        )
    if jaxprs.transpose_solve is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of custom_linear_solve. "
            "Pass transpose_solve, or symmetric=True where the system is."
        )
    ct_x = [instantiate(ct) for ct in cts[: len(b)]]
    swapped = consts.transposed()
    back = custom_linear_solve_p.bind(
        *[c for group in swapped for c in group],
        *ct_x,
        const_lengths=const_lengths.transposed(),
        jaxprs=jaxprs.transposed(),
    )
    return [*[None] * sum(const_lengths), *back[: len(b)]]


def _batch(
    axis: Axis, args: Sequence[Value], dims: Dims, *, const_lengths: _LinearSolveTuple, jaxprs: _LinearSolveTuple
) -> tuple[Any, Any]:
    """Where anything differs between elements, the solution is taken to, and so is the right-hand side."""
    args = [x if d is None else to_front(axis, x, d) for x, d in zip(args, dims)]
    consts, b = _consts_of(args, const_lengths)
    flags, _ = _consts_of([d is not None for d in dims], const_lengths)
    b = [to_front(axis, x, 0 if d is not None else None) for x, d in zip(b, dims[len(dims) - len(b) :])]
    n, out_batched = len(b), [True] * len(jaxprs.solve.out_avals)
    new: list[ClosedJaxpr | None] = []
    for which, jaxpr, mine in zip(jaxprs._fields, jaxprs, flags):
        if jaxpr is None:
            new.append(None)
            continue
        batched, out_b = batch_jaxpr(
            jaxpr, axis, [*mine, *[True] * n], [True] * n + [False] * (len(jaxpr.out_avals) - n)
        )
        new.append(batched)
        if which == "solve":
            out_batched = out_b
    outs = custom_linear_solve_p.bind(
        *[c for group in consts for c in group], *b, const_lengths=const_lengths, jaxprs=_LinearSolveTuple(*new)
    )
    return outs, [0 if f else None for f in out_batched]


custom_linear_solve_p.carries = Carries(
    Runs.ONCE,
    {"jaxprs.solve": ("solve", "b")},
    {**{name: f"const_lengths.{name}" for name in _LinearSolveTuple._fields}, "b": REST},
    aside=("jaxprs.matvec", "jaxprs.vecmat", "jaxprs.transpose_solve"),
)
custom_linear_solve_p.abstract = lambda *avals, jaxprs, **_: list(jaxprs.solve.out_avals)
custom_linear_solve_p.decompose = _evaluate
custom_linear_solve_p.reference = AsDecomposed(custom_linear_solve_p)
custom_linear_solve_p.jvp, custom_linear_solve_p.transpose, custom_linear_solve_p.batch = _jvp, _transpose, _batch
custom_linear_solve_p.effects = lambda params: params["jaxprs"].solve.effects
custom_linear_solve_p.axis_names = lambda params: collective_names(*[j for j in params["jaxprs"] if j is not None])


def _checked_arrays(leaves: Sequence[Any], who: str) -> list[Any]:
    for x in leaves:
        if not is_array_like(x):
            raise TypeError(f"{who} takes arrays; got a value of type {type(x).__name__}: {x!r}.")
    return list(leaves)


class _Like(NamedTuple):
    """A pytree whose structure and types the results of functions must have."""

    value: PyTree
    tree: PyTreeDef
    avals: Sequence[AbstractValue]

    def check(self, tree: PyTreeDef, avals: Sequence[Any], who: str, like: str) -> None:
        problem = describe_mismatch(self.value, avals, self.avals, tree, self.tree)
        if problem:
            error = TypeError if tree != self.tree else ValueError
            raise error(at_user_line(f"{who} must give what {like} is; in its result {problem}."))

    def checked(self, fun: Callable[..., Any], who: str, like: str) -> Callable[..., Any]:
        """`fun` that raises where its result is not like this."""

        def checked(x: PyTree) -> Any:
            out = fun(x)
            leaves, tree = tree_flatten(out)
            self.check(tree, avals_of(leaves), who, like)
            return out

        return checked


@overload
def custom_linear_solve(
    matvec: Callable[[_Tree], _Tree],
    b: _Tree,
    solve: Callable[[Callable[[_Tree], _Tree], _Tree], _Tree],
    transpose_solve: Callable[[Callable[[_Tree], _Tree], _Tree], _Tree] | None = None,
    symmetric: bool = False,
    has_aux: Literal[False] = False,
) -> _Tree: ...
@overload
def custom_linear_solve(
    matvec: Callable[[_Tree], _Tree],
    b: _Tree,
    solve: Callable[[Callable[[_Tree], _Tree], _Tree], tuple[_Tree, _Aux]],
    transpose_solve: Callable[[Callable[[_Tree], _Tree], _Tree], tuple[_Tree, _Aux]] | None = None,
    symmetric: bool = False,
    *,
    has_aux: Literal[True],
) -> tuple[_Tree, _Aux]: ...
@api_boundary
def custom_linear_solve(
    matvec: Callable[..., Any],
    b: PyTree,
    solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The solution x of the linear system matvec(x) = b, as `solve` finds it; its derivatives are solutions of linear
    systems too.

    Args:
        matvec: a linear function from pytrees like `b` to the same.
        b: the right-hand side, a pytree of arrays.
        solve: (matvec, b) -> x; it is not differentiated.
        transpose_solve: (vecmat, b) -> x for the transposed system; reverse mode needs it.
        symmetric: the system is its own transpose, so `solve` serves for both.
        has_aux: `solve` returns (x, anything); no derivatives flow through the second.

    Returns:
        pytree like b, of its dtypes and shapes; with `has_aux` a pair.

    Raises:
        TypeError: if a function's result is not like `b`, and in reverse mode if there is no transposed solve.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> A = jnp.array([[2., 0.], [0., 4.]])
        >>> divide = lambda matvec, b: b / jnp.diag(A)
        >>> solve = lambda b: weft.lax.custom_linear_solve(lambda x: A @ x, b, divide, symmetric=True)
        >>> weft.grad(lambda b: solve(b).sum())(jnp.ones(2))
        Array([0.5 , 0.25], dtype=float32)
    """
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    leaves, tree = tree_flatten(b)
    leaves = _checked_arrays(leaves, "custom_linear_solve")
    avals = avals_of(leaves)
    in_tree = tree_flatten((b,))[1]
    matvec_jaxpr, matvec_consts, out_tree = trace_open(
        matvec, in_tree, avals, "the function matvec of custom_linear_solve"
    )
    like_b = _Like(b, tree, avals)
    like_b.check(out_tree, matvec_jaxpr.out_avals, "the function matvec of custom_linear_solve", "its argument b")

    def solver(how: Callable[..., Any], system: Callable[..., Any], who: str) -> tuple[Any, Any, Any]:
        system = like_b.checked(system, f"the function given to {who} of custom_linear_solve", "the right-hand side")
        jaxpr, consts, solved_tree = trace_open(
            lambda rhs: how(system, rhs), in_tree, avals, f"the function {who} of custom_linear_solve"
        )
        x_tree = solved_tree
        if has_aux:
            if solved_tree.node is not tuple or len(solved_tree.children()) != 2:
                raise TypeError(
                    f"custom_linear_solve with has_aux: {who} must return a pair (solution, aux), got {solved_tree}."
                )
            x_tree = solved_tree.children()[0]
        outs = jaxpr.out_avals[: x_tree.num_leaves]
        like_b.check(x_tree, outs, f"the function {who} of custom_linear_solve", "the right-hand side")
        return close(jaxpr), consts, solved_tree

    solve_jaxpr, solve_consts, solved_tree = solver(solve, matvec, "solve")
    vecmat_jaxpr = transpose_jaxpr_ = None
    vecmat_consts: list[Any] = []
    transpose_consts: list[Any] = []
    if transpose_solve is not None:
        if symmetric:
            vecmat, vecmat_consts, vecmat_jaxpr = matvec, matvec_consts, close(matvec_jaxpr)
        else:
            n = len(matvec_consts)
            vecmat_consts = matvec_consts
            vecmat_jaxpr = transpose_jaxpr(
                close(matvec_jaxpr), [False] * n + [True] * len(leaves), [True] * len(leaves)
            )

            def vecmat(x: PyTree) -> Any:
                return tree_unflatten(
                    tree, eval_jaxpr(vecmat_jaxpr.jaxpr, vecmat_jaxpr.consts, *matvec_consts, *tree_flatten(x)[0])
                )

        transpose_jaxpr_, transpose_consts, _ = solver(transpose_solve, vecmat, "transpose_solve")
    groups = (matvec_consts, vecmat_consts, solve_consts, transpose_consts)
    outs = custom_linear_solve_p.bind(
        *[c for group in groups for c in group],
        *leaves,
        const_lengths=_LinearSolveTuple(*map(len, groups)),
        jaxprs=_LinearSolveTuple(close(matvec_jaxpr), vecmat_jaxpr, solve_jaxpr, transpose_jaxpr_),
    )
    return tree_unflatten(solved_tree, outs)


@overload
def custom_root(
    f: Callable[[_Tree], _Tree],
    initial_guess: _Tree,
    solve: Callable[[Callable[[_Tree], _Tree], _Tree], _Tree],
    tangent_solve: Callable[[Callable[[_Tree], _Tree], _Tree], _Tree],
    has_aux: Literal[False] = False,
) -> _Tree: ...
@overload
def custom_root(
    f: Callable[[_Tree], _Tree],
    initial_guess: _Tree,
    solve: Callable[[Callable[[_Tree], _Tree], _Tree], tuple[_Tree, _Aux]],
    tangent_solve: Callable[[Callable[[_Tree], _Tree], _Tree], _Tree],
    has_aux: Literal[True],
) -> tuple[_Tree, _Aux]: ...
@api_boundary
def custom_root(
    f: Callable[..., Any],
    initial_guess: PyTree,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any],
    has_aux: bool = False,
) -> Any:
    """A root of `f`, as `solve` finds it; its derivative follows from the implicit function theorem.

    Args:
        f: a function from pytrees like `initial_guess` to the same; derivatives are with respect to what it closes
            over.
        initial_guess: where `solve` begins.
        solve: (f, initial_guess) -> root; it is not differentiated.
        tangent_solve: (g, y) -> x with g(x) = y for the linear function g, `f` linearized at the root. For scalars
            `lambda g, y: y / g(1.0)`; for vectors a linear solve, such as `custom_linear_solve` with a matrix-free
            method.
        has_aux: `solve` returns (root, anything); no derivatives flow through the second.

    Returns:
        pytree like `initial_guess`, of its dtypes and shapes; with `has_aux` a pair.

    Raises:
        TypeError: if a function's result is not like `initial_guess`.

    Source: the implicit function theorem, as in Blondel et al., "Efficient and modular implicit differentiation"
    (2022).

    Example:
        >>> import weft
        >>> newton = lambda f, x: weft.lax.fori_loop(0, 20, lambda _, x: x - f(x) / weft.grad(f)(x), x)
        >>> root = lambda a: weft.lax.custom_root(lambda x: x ** 2 - a, 1.0, newton, lambda g, y: y / g(1.0))
        >>> weft.grad(root)(4.0)
        Array(0.25, dtype=float32, weak_type=True)
    """
    guess, tree = tree_flatten(initial_guess)
    guess = _checked_arrays(guess, "custom_root")
    avals, in_tree = avals_of(guess), tree_flatten((initial_guess,))[1]
    f_jaxpr, f_consts, out_tree = trace_open(f, in_tree, avals, "the function f of custom_root")
    like = _Like(initial_guess, tree, avals)
    like.check(out_tree, f_jaxpr.out_avals, "the function f of custom_root", "its initial_guess")
    checked = like.checked(f, "the function given to solve of custom_root", "the initial_guess")
    solve_jaxpr, solve_consts, solved_tree = trace_open(
        lambda x: solve(checked, x), in_tree, avals, "the function solve of custom_root"
    )
    x_tree = solved_tree
    if has_aux:
        if solved_tree.node is not tuple or len(solved_tree.children()) != 2:
            raise TypeError(f"custom_root with has_aux: solve must return a pair (root, aux), got {solved_tree}.")
        x_tree = solved_tree.children()[0]
    outs = solve_jaxpr.out_avals[: x_tree.num_leaves]
    like.check(x_tree, outs, "the function solve of custom_root", "the initial_guess")

    def linearize_and_solve(x: PyTree, y: PyTree) -> Any:
        at, n = tree_flatten(x)[0], len(guess)
        _, nonzero, linear, consts = linearize_flat(lambda *xs: tree_flatten(f(tree_unflatten(tree, xs)))[0], at)

        def g(t: PyTree) -> Any:
            live = iter(eval_jaxpr(linear, consts, *tree_flatten(t)[0]))
            return tree_unflatten(
                tree,
                [
                    next(live) if nz else instantiate(Zero(tangent_aval(a)))
                    for a, nz in zip(f_jaxpr.out_avals[:n], nonzero)
                ],
            )

        return tangent_solve(like.checked(g, "the function given to tangent_solve of custom_root", "its argument"), y)

    pair_tree = tree_flatten((initial_guess, initial_guess))[1]
    step_jaxpr, step_consts, step_tree = trace_open(
        linearize_and_solve, pair_tree, [*avals, *avals], "the function tangent_solve of custom_root"
    )
    like.check(step_tree, step_jaxpr.out_avals, "the function tangent_solve of custom_root", "the initial_guess")
    at_f, at_solve, at_step = (
        len(f_consts),
        len(f_consts) + len(solve_consts),
        len(f_consts) + len(solve_consts) + len(step_consts),
    )

    def run(*args: Value) -> list[Any]:
        return eval_jaxpr(solve_jaxpr, [], *args[at_f:at_solve], *args[at_step:])

    def root_jvp(*args: Value) -> list[Any]:
        n = len(args) // 2
        primals, tangents = args[:n], args[n:]
        outs = bind_custom_jvp(primals, run, rule, "_custom_root")
        x = outs[: x_tree.num_leaves]
        _, rhs = jvp_flat(
            lambda *consts: eval_jaxpr(f_jaxpr, [], *consts, *x), primals[:at_f], [_tangent(t) for t in tangents[:at_f]]
        )
        zero_aux = [Zero(tangent_aval(get_aval(o))) for o in outs[len(x) :]]
        if all(type(r) is Zero for r in rhs):
            return [*outs, *[Zero(tangent_aval(get_aval(o))) for o in outs]]
        step = eval_jaxpr(step_jaxpr, [], *primals[at_solve:at_step], *x, *[instantiate(r) for r in rhs])
        return [*outs, *[neg(s) for s in step], *zero_aux]

    rule = Rule("_root_jvp", root_jvp)
    outs = bind_custom_jvp([*f_consts, *solve_consts, *step_consts, *guess], run, rule, "_custom_root")
    return tree_unflatten(solved_tree, outs)


def _tangent(t: Value) -> Value | Zero:
    """A tangent of custom_jvp's flat rule. Tangents of integers are host arrays of float0, which take part in no
    computation.
    """
    aval = get_aval(t) if type(t) is not Zero else t.aval
    return t if tangent_aval(aval) == aval and type(t) is not Zero else Zero(tangent_aval(aval))
