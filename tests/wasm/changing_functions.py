"""Functions in which a value changes that a lowering might take to stay as it is: carries that change places, operands
of what is computed together that an update or the next carry writes over, counters that do not only count, results in
the storage of donated arguments.

`CASES[name]` is (function, arguments); all compute with integers, so that every difference is seen.
"""

import numpy as np
from weft import lax
from weft import numpy as jnp

CASES: dict[str, tuple] = {}
N = 7
A, B, C = (np.arange(N, dtype=np.int32) * k + o for k, o in ((1, 1), (3, -4), (-2, 20)))
M = np.arange(5 * N, dtype=np.int32).reshape(5, N) % 11


def case(*args):
    """Registers a function with the arguments that it is called with."""

    def register(f):
        CASES[f.__name__] = f, args
        return f

    return register


def loop(n, step, *init):
    """The carries after n times `step(k, *carries)`."""
    return lax.fori_loop(0, n, lambda k, v: tuple(step(k, *v)), init)


def total(x, axis=None):
    return x.sum(axis, dtype="int32")


def put(x, update, *start):
    return lax.dynamic_update_slice(x, update, tuple(jnp.asarray(s) for s in start))


# ---- initial values of inner loops: `initialise` in lower/control.py, `dies_at` and `may_write` in lower/loop_nests.py


@case(A, B)
def inner_loop_that_begins_with_the_carries_swapped(a, b):
    return loop(3, lambda i, a, b: loop(2, lambda j, u, w: (u + 1, w * 2 - j), b, a), a, b)


@case(A, B, C)
def inner_loops_that_rotate_at_each_level(a, b, c):
    inner = lambda k, u, v, w: (v + k, w, u)
    middle = lambda j, u, v, w: loop(2, inner, w, u + j, v)
    return loop(3, lambda i, u, v, w: loop(2, middle, v, w, u - i), a, b, c)


@case(A, B)
def inner_loop_that_begins_with_the_carries_reversed(a, b):
    return loop(3, lambda i, a, b: loop(2, lambda j, u, w: (u + w, w - 1), lax.rev(b, (0,)), lax.rev(a, (0,))), a, b)


@case(A, B)
def inner_loop_that_begins_with_one_carry_twice(a, b):
    return loop(3, lambda i, a, b: loop(2, lambda j, u, w: (u + 1, w * 3), a, a + b), a, b)


@case(A, B)
def inner_loop_that_begins_with_a_computed_value_twice(a, b):
    def step(i, a, b):
        c = jnp.cumsum(a)
        u, w = loop(2, lambda j, u, w: (u + 1, w * 3), c, c)
        return u - w, b + u

    return loop(3, step, a, b)


@case(A, B)
def inner_loop_that_begins_with_a_value_and_what_is_made_of_it(a, b):
    def step(i, a, b):
        c = jnp.sort(b - a)
        return loop(2, lambda j, u, w: (u + w, w + 1), c, lax.rev(c, (0,)))

    return loop(3, step, a, b)


@case(A, B)
def inner_loop_whose_initial_value_is_needed_after_it(a, b):
    def step(i, a, b):
        c = jnp.sort(a * b)
        (u,) = loop(2, lambda j, u: (u + a,), c)
        return u + lax.rev(c, (0,)), b + c

    return loop(3, step, a, b)


@case(A, B)
def inner_loop_that_reads_from_outside_what_it_begins_with(a, b):
    def step(i, a, b):
        c = jnp.sort(b)
        (u,) = loop(3, lambda j, u: (u + c * j,), c)
        return u, a

    return loop(2, step, a, b)


@case(A, B)
def inner_loop_that_reads_the_carry_that_it_begins_with(a, b):
    return loop(3, lambda i, a, b: (loop(3, lambda j, u: (u * 2 + a * j,), a)[0], b - 1), a, b)


@case(A, B)
def inner_loop_that_begins_with_a_result_of_the_outer_one(a, b):
    """Which waits until what it is written over has been read."""

    def step(i, a, b):
        c = jnp.sort(b - a)
        (u,) = loop(2, lambda j, u: (u * 2 - j,), c)
        return c, u + lax.rev(a, (0,))

    return loop(3, step, a, b)


@case(A, B)
def inner_loop_that_begins_with_updates_of_one_carry(a, b):
    return loop(3, lambda i, a, b: loop(2, lambda j, u, w: (u + 1, w + u), put(a, b[:2], i), a), a, b)


@case(A, B)
def while_that_begins_with_the_carries_swapped(a, b):
    def inner(a, b):
        return lax.while_loop(lambda v: v[0][0] < 30, lambda v: (v[1] + jnp.abs(v[0]) + 3, v[0]), (b, a))

    return loop(3, lambda i, a, b: inner(a - 20 * i, b), a, b)


@case(M, A)
def rows_of_a_carry_that_the_loop_over_them_begins_with(m, a):
    def step(i, m, a):
        a, rows = lax.scan(lambda c, row: (c + row, c * 2 - lax.rev(row, (0,))), m[1] - a, m, reverse=True)
        return rows, a

    return loop(3, step, m, a)


@case(A, B)
def branches_that_swap_and_loop(a, b):
    swap = lambda a, b: (b, a)
    again = lambda a, b: tuple(loop(2, lambda j, u, w: (w - j, u), b, a + 1))
    reverse = lambda a, b: (lax.rev(a, (0,)), lax.rev(a, (0,)) + b)
    return loop(7, lambda i, a, b: lax.switch((i * 2) % 4, [swap, again, reverse, lambda a, b: (a, b)], a, b), a, b)


# ---- counters and constants: `step_of`, `Counters` and `body_of` in lower/control.py


def scalars(*values):
    return [np.int32(v) for v in values]


@case(A)
def counters_that_swap(a):
    return loop(5, lambda i, u, w, a: (w + 1, u + 1, a * 2 + u), *scalars(10, 3), a)


@case(A)
def counter_that_is_taken_from_a_constant(a):
    return loop(5, lambda i, u, a: (12 - u, a * 2 + u), *scalars(5), a)


@case(A)
def counters_that_go_down_and_by_another(a):
    return loop(5, lambda i, u, w, a: (u - 3, w + u, a * 2 + w), *scalars(5, 1), a)


@case(A)
def counter_that_only_some_iterations_change(a):
    return loop(6, lambda i, u, a: (jnp.where(a[i] > 3, u + 1, u), a + u), *scalars(2), a)


@case(A)
def counter_of_an_outer_loop_that_an_inner_one_goes_on_with(a):
    def step(i, u, a):
        w, a = loop(3, lambda j, w, a: (w * 2 + j, a + w), u, a)
        return u + 1, a - w + u

    return loop(4, step, *scalars(1), a)


@case(A)
def counter_of_an_inner_loop_that_begins_anew(a):
    def step(i, total, a):
        w, a = loop(3, lambda j, w, a: (w + 5, a + w), *scalars(1), a)
        return total + w, a * total

    return loop(4, step, *scalars(0), a)


@case(A)
def counter_that_is_wanted_after_the_loop(a):
    u, w, a = loop(4, lambda i, u, w, a: (u + 2, w - 1, a + u * w), *scalars(7, 100), a)
    return u, a * w


@case(A)
def carries_that_begin_as_constants(a):
    zero, five = jnp.zeros(N, "int32"), jnp.full(N, 5, "int32")
    return loop(4, lambda i, u, w, a: (u + a, lax.rev(u, (0,)) - w, a + w), zero, five, a)


@case(A)
def constant_carries_of_an_inner_loop(a):
    def step(i, u, a):
        w, s = loop(3, lambda j, w, s: (w + a, s * 2 + w[0]), jnp.zeros(N, "int32"), *scalars(1))
        return u + s, w - u

    return loop(3, step, *scalars(4), a)


# ---- what is computed together, and what its operands' storage is written over with: lower/fuse.py, `may_write`


@case(A, B)
def each_of_the_other_reversed(a, b):
    return loop(3, lambda i, a, b: (a + lax.rev(b, (0,)), b * 2 - 1), a, b)


@case(A, B)
def sum_and_difference(a, b):
    return loop(3, lambda i, a, b: (a + b, a - b), a, b)


@case(A, B)
def one_element_for_all(a, b):
    return loop(3, lambda i, a, b: (a * 2 - a[3], b + a[5]), a, b)


@case(A, B)
def sums_of_what_is_written_over(a, b):
    return loop(3, lambda i, a, b: (a - total(a), b + total(a * b) - b.max()), a, b)


@case(M, A)
def sums_along_both_axes(m, a):
    return loop(3, lambda i, m, a: (m - total(m, 1)[:, None] + a, a + total(m, 0)), m, a)


@case(M)
def square_that_is_transposed(m):
    return loop(3, lambda i, m: (m.T + m,), m[:, :5])


@case(A, B)
def stored_values_that_are_read_in_another_order(a, b):
    """What reads a stored value backwards must not be computed together with it, nor where it reads another one as
    it comes.
    """

    def step(i, a, b):
        c, d = a * b + 1, a - b
        return lax.rev(c, (0,)) + d, c * d - lax.rev(d, (0,)), c, d

    return loop(3, lambda i, a, b, c, d: step(i, a + d, b - c), a, b, b, a)


@case(A)
def shifted_onto_itself(a):
    return loop(3, lambda i, a: (jnp.roll(a, 1) + jnp.concatenate([a[:3], a[:4]]),), a)


@case(A, B)
def sorted_and_kept(a, b):
    return loop(3, lambda i, a, b: (jnp.sort(b - a), a + b), a, b)


@case(A)
def rows_of_the_old_and_of_the_new_carry(a):
    def step(c, k):
        new = lax.rev(c, (0,)) + k
        return new, (c, new, c - new)

    return lax.scan(step, a, np.arange(4, dtype=np.int32), reverse=True)


@case(M, A, A)
def product_beside_what_it_is_made_of(m, a, b):
    return loop(3, lambda i, m, a, b: (m[:, :5].T @ m % 100, (a + m[0]) % 100, (m[:, :5] @ m)[0] + b), m % 3, a, b)


# ---- updates in place: `overwritten` and `updates_last` in lower/fuse.py


@case(A, B)
def producer_whose_operand_is_updated(a, b):
    """What is made of the old array is wanted after the update."""
    return loop(3, lambda i, a, b: (put(a, b[:2], i), b + a * 3), a, b)


@case(A)
def update_made_of_what_it_writes_over(a):
    return loop(3, lambda i, a: (put(a, lax.rev(a, (0,))[1:6] * 2, i % 2),), a)


@case(A)
def update_at_a_place_that_the_array_says(a):
    return loop(4, lambda i, a: (put(a, a[2:4] + 1, a[1] % 5),), a)


@case(A)
def updates_one_after_the_other(a):
    """The second one is made of what was there before the first."""

    def step(i, a):
        p, q = lax.dynamic_slice(a, (i,), (2,)), lax.dynamic_slice(a, (i + 1,), (2,))
        return (put(put(a, p * 2 + q, i + 1), p - q, i),)

    return loop(4, step, a)


@case(A, B)
def update_and_what_was_there(a, b):
    return loop(3, lambda i, a, b: (put(a, b[2:4], i), a), a, b)


@case(A)
def two_updates_of_one_array(a):
    return loop(3, lambda i, a: (put(a, a[4:6] * 2, i) + put(a, a[:3] - 1, i + 2),), a)


@case(A)
def scatter_of_what_it_writes_over(a):
    at = np.array([3, 1, 3, 0, 6], np.int32)
    return loop(3, lambda i, a: (a.at[at].add(lax.rev(a, (0,))[:5]),), a)


@case(A)
def scatter_at_places_that_the_array_says(a):
    return loop(3, lambda i, a: (a.at[lax.rev(a, (0,)) % N].set(a * 2 + 1),), a)


@case(M)
def rows_that_are_scattered_onto_each_other(m):
    at = np.array([3, 1, 3, 0], np.int32)
    return loop(3, lambda i, m: (m.at[at].add(m[1:5]).at[:, 2].set(m[:, 5]),), m)


@case(M, A)
def row_that_is_read_before_and_after_it_is_written(m, a):
    def step(i, m, a):
        new = put(m, (m[2] + a)[None], i, np.int32(0))
        return new, a + new[i] - m[i] * 2 + total(new, 0)

    return loop(4, step, m, a)


# ---- results in the storage of donated arguments: `unread_when_written` in lower/program.py


@case(A, M)
def argument_that_is_updated_and_read(a, m):
    new = put(m, (a * 2)[None], 1, 0)
    return new, m[1] + a, total(new, 0) - total(m, 0)


@case(A)
def argument_that_is_reversed(a):
    return (lax.rev(a, (0,)) * 2,)


@case(A, B)
def sum_and_product_of_arguments(a, b):
    return a + b, a * b


@case(A, B)
def argument_that_is_a_result(a, b):
    return a + b, a, a


@case(A, B)
def loop_that_reads_the_argument_that_it_begins_with(a, b):
    return loop(3, lambda j, u, w: (u + a * j, w + lax.rev(b, (0,))), a, b)


@case(A, B)
def arguments_that_are_read_after_the_first_result(a, b):
    return lax.rev(b, (0,)) + a, a - b, jnp.sort(a) + b[2]
