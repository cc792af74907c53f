"""optimizers: first-order methods as triples of functions on pytrees of parameters.

`init_fn(params)` gives a state, `update_fn(step, grads, state)` the next one, `params_fn(state)` the parameters. Step
sizes are numbers or schedules, functions of the step.

Example:
    >>> import weft, weft.numpy as jnp
    >>> from weft.example_libraries import optimizers
    >>> init, update, params = optimizers.momentum(0.1, mass=0.9)
    >>> state = init({"w": jnp.array(1.0)})
    >>> for step in range(40):
    ...     state = update(step, weft.grad(lambda p: p["w"] ** 2)(params(state)), state)
    >>> bool(abs(params(state)["w"]) < 0.3)
    True
"""

from __future__ import annotations

import functools
from typing import Any, Callable, NamedTuple, TypeAlias

from .. import numpy as jnp
from ..base.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from ..base.registration import register_pytree_node

__all__ = [
    "InitFn",
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "Params",
    "ParamsFn",
    "Schedule",
    "State",
    "Step",
    "UpdateFn",
    "Updates",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]

Step = int
Params: TypeAlias = Any
State: TypeAlias = Any
Updates: TypeAlias = Any
Schedule = Callable[[Step], float]
InitFn = Callable[[Params], "OptimizerState"]
UpdateFn = Callable[[Step, Updates, "OptimizerState"], "OptimizerState"]
ParamsFn = Callable[["OptimizerState"], Params]


class OptimizerState(NamedTuple):
    """The state of an optimizer, a pytree: for each parameter the flat state, and how to rebuild it.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> len(optimizers.adam(0.1).init_fn({'w': jnp.zeros(2)}).packed_state[0])
        3
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda aux, children: OptimizerState(children[0], *aux),
)


class Optimizer(NamedTuple):
    """The three functions of an optimizer.

    Example:
        >>> from weft.example_libraries import optimizers
        >>> optimizers.sgd(0.1)._fields
        ('init_fn', 'update_fn', 'params_fn')
    """

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


class JoinPoint:
    """Where the state of one parameter begins in what `unpack_optimizer_state` gives; a leaf.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> optimizers.unpack_optimizer_state(optimizers.sgd(0.1).init_fn([jnp.ones(2)]))[0].subtree
        Array([1., 1.], dtype=float32)
    """

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self):
        yield self.subtree


def optimizer(opt_maker: Callable) -> Callable[..., Optimizer]:
    """A decorator that makes an optimizer of single arrays one of pytrees of them.

    Args:
        opt_maker: a function that returns (init, update, get_params). init(x) makes the state of a parameter x, an
            array of any shape and dtype; update(step, gradient, state) returns the next state; get_params(state)
            returns the parameter.

    Returns:
        a function of the same arguments that returns an `Optimizer`. Its functions take and return pytrees.

    Raises:
        TypeError: `update_fn` raises it if the gradients do not have the parameters' structure, or if the state
            changes its own.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> plain = optimizers.optimizer(lambda rate: (lambda x: x, lambda i, g, x: x - rate * g, lambda x: x))
        >>> init, update, params = plain(0.5)
        >>> params(update(0, {'w': jnp.ones(2)}, init({'w': jnp.zeros(2)})))
        {'w': Array([-0.5, -0.5], dtype=float32)}
    """

    @functools.wraps(opt_maker)
    def make(*args, **kwargs) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_fn(params):
            leaves, tree = tree_flatten(params)
            return _packed([init(x) for x in leaves], tree)

        def update_fn(i, grads, state):
            packed, tree, subtrees = state
            gradients, grad_tree = tree_flatten(grads)
            if grad_tree != tree:
                raise TypeError(
                    f"{opt_maker.__name__}: the gradients must have the structure of the parameters, {tree}, got"
                    f" {grad_tree}."
                )
            new = _packed([update(i, g, tree_unflatten(s, x)) for g, s, x in zip(gradients, subtrees, packed)], tree)
            for before, after in zip(subtrees, new.subtree_defs):
                if before != after:
                    raise TypeError(
                        f"{opt_maker.__name__}: update gave a state of the structure {after}, not {before} as init did."
                    )
            return new

        def params_fn(state):
            packed, tree, subtrees = state
            return tree_unflatten(tree, [get_params(tree_unflatten(s, x)) for s, x in zip(subtrees, packed)])

        return Optimizer(init_fn, update_fn, params_fn)

    return make


def _packed(states: list, tree) -> OptimizerState:
    flat = [tree_flatten(s) for s in states]
    return OptimizerState(tuple(tuple(leaves) for leaves, _ in flat), tree, tuple(t for _, t in flat))


def unpack_optimizer_state(opt_state: OptimizerState):
    """The state as a pytree like the parameters, each leaf a `JoinPoint` that holds the parameter's state. It can be
    saved without classes of weft's own.

    Args:
        opt_state: an `OptimizerState`, of arrays of any shapes and dtypes.

    Returns:
        a pytree of `JoinPoint` objects; `subtree` is the state of one parameter.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> state = optimizers.momentum(0.1, 0.9).init_fn({'w': jnp.ones(2)})
        >>> optimizers.unpack_optimizer_state(state)['w'].subtree
        (Array([1., 1.], dtype=float32), Array([0., 0.], dtype=float32))
    """
    packed, tree, subtrees = opt_state
    return tree_unflatten(tree, [JoinPoint(tree_unflatten(s, x)) for s, x in zip(subtrees, packed)])


def pack_optimizer_state(marked_pytree) -> OptimizerState:
    """The state from what `unpack_optimizer_state` has returned.

    Args:
        marked_pytree: a pytree of `JoinPoint` objects, of arrays of any shapes and dtypes.

    Returns:
        an `OptimizerState`.

    Raises:
        TypeError: a leaf is not a `JoinPoint`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> adam = optimizers.adam(0.1)
        >>> state = adam.init_fn([jnp.ones(2)])
        >>> adam.params_fn(optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state)))
        [Array([1., 1.], dtype=float32)]
    """
    points, tree = tree_flatten(marked_pytree)
    if not all(isinstance(p, JoinPoint) for p in points):
        raise TypeError(
            "pack_optimizer_state takes a pytree whose leaves are JoinPoints, as unpack_optimizer_state gives it."
        )
    return _packed([p.subtree for p in points], tree)


# Optimizers ----------------------------------------------------------------------------------------------------------


@optimizer
def sgd(step_size):
    """Gradient descent: x - step_size g.

    Args:
        step_size: a float scalar, or a schedule.

    Returns:
        an `Optimizer`: (init_fn, update_fn, params_fn) for pytrees of arrays of any shapes and a floating-point
        dtype.

    Raises:
        TypeError: the step size is neither a number nor a function.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> init, update, params = optimizers.sgd(0.1)
        >>> params(update(0, jnp.array([1., -2.]), init(jnp.zeros(2)))).round(3) + 0
        Array([-0.1,  0.2], dtype=float32)
    """
    step_size = make_schedule(step_size)
    return lambda x0: x0, lambda i, g, x: x - step_size(i) * g, lambda x: x


def _first(state):
    return state[0]


@optimizer
def momentum(step_size: Schedule, mass: float):
    """Gradient descent with momentum: v' = mass v + g, x' = x - step_size v'.

    Source: B. Polyak, "Some methods of speeding up the convergence of iteration methods" (1964).

    Args:
        step_size: a float scalar, or a schedule.
        mass: the factor by which the velocity decays; float.

    Returns:
        an `Optimizer`: (init_fn, update_fn, params_fn) for pytrees of arrays of any shapes and a floating-point
        dtype.

    Raises:
        TypeError: the step size is neither a number nor a function.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> init, update, params = optimizers.momentum(0.1, mass=0.9)
        >>> params(update(0, jnp.array([1., -2.]), init(jnp.zeros(2)))).round(3) + 0
        Array([-0.1,  0.2], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * velocity, velocity

    return lambda x0: (x0, jnp.zeros_like(x0)), update, _first


@optimizer
def nesterov(step_size: Schedule, mass: float):
    """Nesterov's momentum: v' = mass v + g, x' = x - step_size (mass v' + g).

    Source: Y. Nesterov (1983); I. Sutskever et al., "On the importance of initialization and momentum in deep learning"
    (2013).

    Args:
        step_size: a float scalar, or a schedule.
        mass: the factor by which the velocity decays; float.

    Returns:
        an `Optimizer`: (init_fn, update_fn, params_fn) for pytrees of arrays of any shapes and a floating-point
        dtype.

    Raises:
        TypeError: the step size is neither a number nor a function.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> init, update, params = optimizers.nesterov(0.1, mass=0.5)
        >>> params(update(0, jnp.array([1., -2.]), init(jnp.zeros(2)))).round(3) + 0
        Array([-0.15,  0.3 ], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * (mass * velocity + g), velocity

    return lambda x0: (x0, jnp.zeros_like(x0)), update, _first


def _inverse_root(x):
    return jnp.where(x > 0, 1 / jnp.sqrt(jnp.where(x > 0, x, 1)), 0.0)


@optimizer
def adagrad(step_size, momentum=0.9):
    """Adagrad: gradients are divided by the root of the sum of their squares so far.

    Source: J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and stochastic
    optimization" (2011).

    Args:
        step_size: a float scalar, or a schedule.
        momentum: the weight of earlier directions; float.

    Returns:
        an `Optimizer`: (init_fn, update_fn, params_fn) for pytrees of arrays of any shapes and a floating-point
        dtype.

    Raises:
        TypeError: the step size is neither a number nor a function.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> init, update, params = optimizers.adagrad(0.1)
        >>> params(update(0, jnp.array([1., -2.]), init(jnp.zeros(2)))).round(3) + 0
        Array([-0.01,  0.01], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, square, m = state
        square = square + jnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(square)) + momentum * m
        return x - step_size(i) * m, square, m

    return lambda x0: (x0, jnp.zeros_like(x0), jnp.zeros_like(x0)), update, _first


@optimizer
def rmsprop(step_size, gamma=0.9, eps=1e-8):
    """RMSProp: gradients are divided by the root of a running mean of their squares.

    Source: T. Tieleman and G. Hinton, lecture 6.5 of "Neural networks for machine learning" (2012).

    Args:
        step_size: a float scalar, or a schedule.
        gamma: the weight of earlier squares in the mean; float.
        eps: is added to the mean; float.

    Returns:
        an `Optimizer`: (init_fn, update_fn, params_fn) for pytrees of arrays of any shapes and a floating-point
        dtype.

    Raises:
        TypeError: the step size is neither a number nor a function.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> init, update, params = optimizers.rmsprop(0.1)
        >>> params(update(0, jnp.array([1., -2.]), init(jnp.zeros(2)))).round(3) + 0
        Array([-0.316,  0.316], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, mean = state
        mean = mean * gamma + jnp.square(g) * (1 - gamma)
        return x - step_size(i) * g / jnp.sqrt(mean + eps), mean

    return lambda x0: (x0, jnp.zeros_like(x0)), update, _first


@optimizer
def rmsprop_momentum(step_size, gamma=0.9, eps=1e-8, momentum=0.9):
    """RMSProp with momentum.

    Source: T. Tieleman and G. Hinton, lecture 6.5 of "Neural networks for machine learning" (2012).

    Args:
        step_size: a float scalar, or a schedule.
        gamma: the weight of earlier squares in the mean; float.
        eps: is added to the mean; float.
        momentum: the factor by which the velocity decays; float.

    Returns:
        an `Optimizer`: (init_fn, update_fn, params_fn) for pytrees of arrays of any shapes and a floating-point
        dtype.

    Raises:
        TypeError: the step size is neither a number nor a function.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> init, update, params = optimizers.rmsprop_momentum(0.1)
        >>> params(update(0, jnp.array([1., -2.]), init(jnp.zeros(2)))).round(3) + 0
        Array([-0.316,  0.316], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, mean, m = state
        mean = mean * gamma + jnp.square(g) * (1 - gamma)
        m = momentum * m + step_size(i) * g / jnp.sqrt(mean + eps)
        return x - m, mean, m

    return lambda x0: (x0, jnp.zeros_like(x0), jnp.zeros_like(x0)), update, _first


@optimizer
def adam(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """Adam: running means of the gradients and of their squares, both without the bias of their first steps.

    Source: D. Kingma and J. Ba, "Adam: a method for stochastic optimization" (2014), algorithm 1.

    Args:
        step_size: a float scalar, or a schedule.
        b1, b2: the weights of earlier gradients, and of earlier squares, in the means; floats.
        eps: is added to the denominator; float.

    Returns:
        an `Optimizer`: (init_fn, update_fn, params_fn) for pytrees of arrays of any shapes and a floating-point
        dtype.

    Raises:
        TypeError: the step size is neither a number nor a function.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> init, update, params = optimizers.adam(0.1)
        >>> params(update(0, jnp.array([1., -2.]), init(jnp.zeros(2)))).round(3) + 0
        Array([-0.1,  0.1], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        unbiased = lambda mean, b: mean / (1 - jnp.asarray(b, m.dtype) ** (i + 1))
        return x - step_size(i) * unbiased(m, b1) / (jnp.sqrt(unbiased(v, b2)) + eps), m, v

    return lambda x0: (x0, jnp.zeros_like(x0), jnp.zeros_like(x0)), update, _first


@optimizer
def adamax(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """Adamax: Adam with the infinity norm in place of the mean of squares.

    Source: D. Kingma and J. Ba, "Adam: a method for stochastic optimization" (2014), algorithm 2.

    Args:
        step_size: a float scalar, or a schedule.
        b1, b2: the weights of earlier gradients, and of the earlier norm; floats.
        eps: is added to the denominator; float.

    Returns:
        an `Optimizer`: (init_fn, update_fn, params_fn) for pytrees of arrays of any shapes and a floating-point
        dtype.

    Raises:
        TypeError: the step size is neither a number nor a function.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> init, update, params = optimizers.adamax(0.1)
        >>> params(update(0, jnp.array([1., -2.]), init(jnp.zeros(2)))).round(3) + 0
        Array([-0.1,  0.1], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        return x - step_size(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1)) * m / (u + eps), m, u

    return lambda x0: (x0, jnp.zeros_like(x0), jnp.zeros_like(x0)), update, _first


@optimizer
def sm3(step_size, momentum=0.9):
    """SM3, which stores a vector for each axis of a parameter in place of an array of its size.

    Source: R. Anil, V. Gupta, T. Koren and Y. Singer, "Memory-efficient adaptive optimization" (2019).

    Args:
        step_size: a float scalar, or a schedule.
        momentum: the weight of earlier directions; float.

    Returns:
        an `Optimizer`: (init_fn, update_fn, params_fn) for pytrees of arrays of any shapes and a floating-point
        dtype.

    Raises:
        TypeError: the step size is neither a number nor a function.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> init, update, params = optimizers.sm3(0.1)
        >>> params(update(0, jnp.array([1., -2.]), init(jnp.zeros(2)))).round(3) + 0
        Array([-0.01,  0.01], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, m, parts = state
        rank = x.ndim
        spread = [jnp.expand_dims(v, [a for a in range(rank) if a != k]) for k, v in enumerate(parts)]
        total = functools.reduce(jnp.minimum, spread) + jnp.square(g) if rank else jnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(total)) + momentum * m
        return x - step_size(i) * m, m, [total.max([a for a in range(rank) if a != k]) for k in range(rank)]

    return lambda x0: (x0, jnp.zeros_like(x0), [jnp.zeros(n, x0.dtype) for n in x0.shape]), update, _first


# Schedules -----------------------------------------------------------------------------------------------------------


def constant(step_size) -> Schedule:
    """The same step size at every step.

    Args:
        step_size: a float scalar.

    Returns:
        a schedule: a function from the number of the step (int) to the step size, a float scalar.

    Example:
        >>> from weft.example_libraries import optimizers
        >>> optimizers.constant(0.1)(7)
        0.1
    """
    return lambda i: step_size


def exponential_decay(step_size, decay_steps, decay_rate) -> Schedule:
    """step_size * decay_rate ** (step / decay_steps).

    Args:
        step_size: the first step size; float scalar.
        decay_steps: after how many steps it is multiplied by `decay_rate`; number.
        decay_rate: the factor; float scalar.

    Returns:
        a schedule: a function from the number of the step (int) to the step size, a float scalar.

    Example:
        >>> from weft.example_libraries import optimizers
        >>> optimizers.exponential_decay(0.5, 10, 0.5)(20)
        0.125
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size, decay_steps, decay_rate, staircase: bool = False) -> Schedule:
    """step_size / (1 + decay_rate * step / decay_steps).

    Args:
        step_size: the first step size; float scalar.
        decay_steps, decay_rate: float scalars.
        staircase: whether step / decay_steps is rounded down, so that the step size changes after every
            `decay_steps` steps only.

    Returns:
        a schedule: a function from the number of the step (int) to the step size, a float scalar.

    Example:
        >>> from weft.example_libraries import optimizers
        >>> optimizers.inverse_time_decay(0.5, 10, 1.0)(10)
        0.25
    """
    return lambda i: step_size / (1 + decay_rate * (jnp.floor(i / decay_steps) if staircase else i / decay_steps))


def polynomial_decay(step_size, decay_steps, final_step_size, power=1.0) -> Schedule:
    """(1 - step / decay_steps) ** power * (step_size - final_step_size) + final_step_size; after `decay_steps` steps it
    stays final_step_size.

    Args:
        step_size, final_step_size: the first and the last step size; float scalars.
        decay_steps: after how many steps the last one is reached; number.
        power: the exponent; float.

    Returns:
        a schedule: a function from the number of the step (int) to the step size, a float scalar.

    Example:
        >>> from weft.example_libraries import optimizers
        >>> float(optimizers.polynomial_decay(1.0, 4, 0.0)(2))
        0.5
    """
    return lambda i: (
        (1 - jnp.minimum(i, decay_steps) / decay_steps) ** power * (step_size - final_step_size) + final_step_size
    )


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """values[k] at steps after boundaries[k - 1], up to and including boundaries[k].

    Args:
        boundaries: increasing numbers of steps, of shape (n,).
        values: the step sizes, of shape (n + 1,) and a float dtype.

    Returns:
        a schedule: a function from the number of the step (int) to the step size, a float scalar.

    Raises:
        ValueError: the shapes are not (n,) and (n + 1,).

    Example:
        >>> from weft.example_libraries import optimizers
        >>> float(optimizers.piecewise_constant([10], [0.5, 0.25])(11))
        0.25
    """
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if not boundaries.ndim == values.ndim == 1 or boundaries.shape[0] != values.shape[0] - 1:
        raise ValueError(
            f"piecewise_constant: boundaries and values must be of shapes (n,) and (n + 1,), got {boundaries.shape} and"
            f" {values.shape}."
        )
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: float | Schedule) -> Schedule:
    """Makes a schedule of a number. Schedules are returned as they are.

    Args:
        scalar_or_schedule: a float scalar, or a function of the step.

    Returns:
        a schedule: a function from the number of the step (int) to the step size, a float scalar.

    Raises:
        TypeError: it is neither.

    Example:
        >>> from weft.example_libraries import optimizers
        >>> optimizers.make_schedule(0.1)(3)
        0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if (
        getattr(scalar_or_schedule, "shape", None) == ()
        or jnp.isscalar(scalar_or_schedule)
        and not isinstance(scalar_or_schedule, str)
    ):
        return constant(scalar_or_schedule)
    raise TypeError(f"a step size is a number or a function of the step, got {type(scalar_or_schedule).__name__}.")


def l2_norm(tree):
    """The Euclidean norm of all leaves as one vector.

    Args:
        tree: a pytree of real arrays of any shapes and dtypes.

    Returns:
        a scalar.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> float(optimizers.l2_norm({'a': jnp.array([3.]), 'b': jnp.array([4.])}))
        5.0
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree, max_norm):
    """Scales gradients down to a norm if theirs is larger.

    Args:
        grad_tree: a pytree of arrays of any shapes and a floating-point dtype.
        max_norm: the largest norm, of all leaves as one vector; float scalar.

    Returns:
        a pytree of the same structure, shapes and dtypes.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.example_libraries import optimizers
        >>> optimizers.clip_grads([jnp.array([3., 4.])], 2.5)[0]
        Array([1.5, 2. ], dtype=float32)
    """
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


def __dir__() -> list[str]:
    return sorted(__all__)
