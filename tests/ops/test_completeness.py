"""Every primitive has each rule or says why it can't, a row of the catalogue exercises each, and what rules say is true
of single operations: a primitive without a transpose is linear in no operands, one with a transpose is transposed with
respect to those in which it is linear, and each is batched in each operand alone.
"""

import collections
import contextlib
import importlib
import itertools
import pathlib
import pkgutil
import sys

import numpy as np
import pytest
from platforms import need

import weft
from weft.base import dtypes
from weft.base.avals import ShapedArray
from weft.base.config import config
from weft.core.interpret import ReferenceTrace, interpret
from weft.core.jaxpr import TypedScalar, subjaxprs
from weft.core.primitive import RULE_NAMES, Missing, NotLinear, Primitive, Unsupported, Zero, registry
from weft.core.trace import Axis, get_aval, mapped_axes, tracing
from weft.runtime.dispatch import program_for
from weft.transforms.stage import JaxprTrace

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from catalogue import ROWS  # noqa: E402

for _module in pkgutil.walk_packages(weft.__path__, "weft."):  # what they register counts
    if "__main__" not in _module.name:
        importlib.import_module(_module.name)
OURS = {name: p for name, p in registry.items() if p.abstract.__module__.startswith("weft.")}

# Rules that no row of the catalogue can exercise, and who does.
ELSEWHERE = {
    ("ffi_call", rule): "it calls compiled code, which only XLA has: tests/native/test_xla_foreign.py"
    for rule in ("abstract", "jvp", "batch")
} | {
    ("debug_report", "abstract"): "a callback becomes one on its way to a host: tests/remote/test_reports.py",
    ("remote_callback", "abstract"): "a callback becomes one on its way to a host: tests/remote/test_callbacks.py",
}
SAMPLES = 4  # of each primitive, of different types


class Sample:
    """An operation that a row performs: its operands and parameters."""

    def __init__(self, row: str, primitive: Primitive, args, params):
        self.row, self.primitive, self.args, self.params = row, primitive, args, params

    def run(self, *args):
        """The results for other operands, by the reference rules, as a list."""
        with tracing(ReferenceTrace()):
            out = self.primitive.bind(*args, **self.params)
        return [np.asarray(x) for x in (out if self.primitive.multiple_results else [out])]

    def __repr__(self):
        return (
            f"{self.primitive} of {', '.join(map(str, map(get_aval, self.args)))} with {sorted(self.params)}, in the"
            f" row {self.row}"
        )


class Recording(ReferenceTrace):
    """Keeps some operations of each primitive."""

    def __init__(self):
        self.kept, self.row = collections.defaultdict(dict), ""

    def process(self, primitive, args, params):
        kept = self.kept[primitive]
        arrays = [
            np.asarray(x.val if type(x) is TypedScalar else x, get_aval(x).dtype)
            for x in args
            if isinstance(get_aval(x), ShapedArray)
        ]
        key = tuple((a.shape, a.dtype) for a in arrays)
        if len(arrays) == len(args) and key not in kept and len(kept) < SAMPLES:
            kept[key] = Sample(self.row, primitive, arrays, params)
        return super().process(primitive, args, params)


@contextlib.contextmanager
def counted():
    """(primitive, rule) -> the rows that have called the rule, while the block lasts."""
    called = collections.defaultdict(set)
    row = [""]
    with pytest.MonkeyPatch.context() as patch:
        for name, primitive in OURS.items():
            if primitive.cache is not None:
                patch.setattr(primitive, "cache", {})
            for rule in RULE_NAMES:
                own = getattr(primitive, rule)
                if not isinstance(own, Unsupported):

                    def counting(*args, own=own, key=(name, rule), **params):
                        called[key].add(row[0])
                        return own(*args, **params)

                    patch.setattr(primitive, rule, counting)
        yield called, row


def equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for sub in subjaxprs(eqn.params):
            yield from equations(sub)


def directly(eqn, called):
    """Calls the rules that no transformation comes to: of operations without operands, and the jvp of those whose
    operands or results have no tangents.
    """
    primitive, avals = eqn.primitive, [a.aval for a in eqn.invars]
    trace = JaxprTrace("an operation")
    names = primitive.axis_names(eqn.params) if primitive.axis_names is not None else ()
    with mapped_axes(*[Axis(n, 1) for n in names]), tracing(trace):
        args = [trace.new_arg(a) for a in avals]
        missed = lambda rule: not called[primitive.name, rule] and not isinstance(getattr(primitive, rule), Unsupported)
        smooth = [isinstance(a, ShapedArray) and dtypes.is_inexact(a.dtype) for a in avals]
        if missed("jvp") and (not any(smooth) or primitive.name in ("bitcast_convert_type", "rng_uniform")):
            _, tangents = primitive.jvp(
                args, [x if moves else Zero(a) for x, a, moves in zip(args, avals, smooth)], **eqn.params
            )
            assert all(type(t) is Zero for t in (tangents if primitive.multiple_results else [tangents])), (
                f"{primitive} has a tangent, and its arguments have none"
            )
        if missed("batch") and not any(isinstance(a, ShapedArray) for a in avals):
            with mapped_axes(Axis("rows", 2)):
                primitive.batch(Axis("rows", 2), args, [None] * len(args), **eqn.params)
        if missed("reference") and not avals:
            primitive.reference(**eqn.params)


@pytest.fixture(scope="module")
def exercised():
    """(which row has called which rule, the operations that rows perform)."""
    weft.clear_caches()  # what other tests have traced calls no rule again
    recording = Recording()
    with counted() as (called, at):
        for row in ROWS:
            at[0] = recording.row = row.id
            args = row.sample()
            closed = weft.make_jaxpr(row.fun)(*args)
            programs = [(closed, args)]
            floats = [i for i, a in enumerate(args) if dtypes.is_inexact(dtypes.dtype(a.dtype))]
            with contextlib.ExitStack() as stack:
                if not row.grad:  # some can be differentiated nevertheless
                    stack.enter_context(contextlib.suppress(NotImplementedError, ValueError, TypeError))
                if floats and dtypes.is_inexact(closed.out_avals[0].dtype):

                    def back(ct, *xs, row=row, args=args, floats=floats):
                        return weft.vjp(
                            lambda *xs: row.fun(
                                *[xs[floats.index(i)] if i in floats else a for i, a in enumerate(args)]
                            ),
                            *xs,
                        )[1](ct)

                    inputs = [np.ones(closed.out_avals[0].shape, closed.out_avals[0].dtype), *[args[i] for i in floats]]
                    programs.append((weft.make_jaxpr(back)(*inputs), inputs))
            weft.make_jaxpr(weft.vmap(row.fun))(*[np.stack([a, a]) for a in args])
            for program, inputs in programs:
                for eqn in equations(program.jaxpr):
                    directly(eqn, called)
                lowered, consts = program_for(program, "reference", ("cpu",))
                with tracing(recording):
                    interpret(lowered, [*map(np.asarray, consts), *inputs])
    return called, recording.kept


def test_no_rule_is_missing():
    missing = [
        f"{name}.{rule}"
        for name, p in OURS.items()
        for rule in RULE_NAMES
        if isinstance(getattr(p, rule), Missing) or getattr(p, rule) is None
    ]
    assert not missing, "give each, or say why it can't be: weft.core.primitive.unsupported"


def test_a_reason_is_a_sentence_that_is_raised():
    reasons = [
        (f"{name}.{rule}", own)
        for name, p in OURS.items()
        for rule in RULE_NAMES
        if isinstance(own := getattr(p, rule), Unsupported)
    ]
    assert reasons
    for place, own in reasons:
        with pytest.raises(own.error) as e:
            own(name="it")
        assert len(str(e.value).split("\n")[0].split()) >= 4, f"{place}: {e.value}"


def test_a_row_exercises_each_rule(exercised):
    called, _ = exercised
    expected = {
        (name, rule) for name, p in OURS.items() for rule in RULE_NAMES if not isinstance(getattr(p, rule), Unsupported)
    }
    assert expected - {key for key, rows in called.items() if rows} == set(ELSEWHERE), (
        "add a row to tests/ops/catalogue_rules.py"
    )


# single operations ---------------------------------------------------------------------------------------------------


def samples(exercised):
    return [s for kept in exercised[1].values() for s in kept.values()]


def close(got, want, about):
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype, about
        wide = np.complex128 if dtypes.is_complex(w.dtype) else np.float64 if dtypes.is_float(w.dtype) else w.dtype
        tolerance = 2e-4 if dtypes.bits(w.dtype) >= 32 else 5e-2
        np.testing.assert_allclose(g.astype(wide), w.astype(wide), rtol=tolerance, atol=tolerance, err_msg=str(about))


# Operations that need no transpose for what they seem to be, and those whose batched form is not the loop.
NOT_ALONE = {
    **dict.fromkeys(
        ("all_gather", "all_gather_invariant", "all_to_all", "pbroadcast", "ppermute", "psum", "reduce_scatter"),
        "it works over a mapped axis, so test_catalogue.py transposes it",
    ),
    "custom_lin": "it is known in reverse only",
    "reduce_precision": "it rounds, so it is linear but for that",
}
ALMOST_LINEAR = {"nextafter": "it differs from its first operand in the last place"}
OTHER_BATCHES = {
    "rng_bit_generator": "one generator makes the numbers of all, as in JAX",
    "rng_uniform": "no two draws are alike",
}


def test_batched_in_each_operand_alone(exercised):
    """Along its last axis; and in all together, along the first."""
    count = 0
    for s in samples(exercised):
        if isinstance(s.primitive.batch, Unsupported) or s.primitive.name in OTHER_BATCHES or not s.args:
            continue
        every = range(len(s.args))
        for which, axis in [*(([i], -1) for i in every), ([*every], 0)]:
            pairs = [[x, x[::-1] if x.ndim else x] if i in which else [x, x] for i, x in enumerate(s.args)]
            want = [np.stack(both) for both in zip(*[s.run(*[p[k] for p in pairs]) for k in range(2)])]
            dims = [axis if i in which else None for i in every]
            inputs = [
                np.stack(p, axis if axis == 0 else p[0].ndim) if i in which else p[0] for i, p in enumerate(pairs)
            ]
            batched = weft.make_jaxpr(weft.vmap(lambda *xs, s=s: s.primitive.bind(*xs, **s.params), in_axes=dims))(
                *inputs
            )
            close(interpret(batched, inputs), want, f"{s}, batched in {which} along {axis}")
            count += 1
    assert count > 1000


def linear_sets(s, rng):
    """The largest sets of operands in which an operation is linear, the others as they are."""
    inexact = [i for i, a in enumerate(s.args) if dtypes.is_inexact(a.dtype) and a.size]
    if not inexact or not s.run(*s.args) or not all(dtypes.is_inexact(x.dtype) for x in s.run(*s.args)):
        return []
    found = []
    for size in range(min(len(inexact), 4), 0, -1):
        for which in itertools.combinations(inexact, size):
            if not any(set(which) <= set(f) for f in found) and is_linear(s, which, rng):
                found.append(which)
    return found


def noise(a, rng):
    drawn = rng.normal(size=a.shape)
    return (drawn + 1j * rng.normal(size=a.shape) if dtypes.is_complex(a.dtype) else drawn).astype(a.dtype)


def is_linear(s, which, rng) -> bool:
    """Whether f(2 x - 3 y) = 2 f(x) - 3 f(y), three times."""
    at = lambda values: s.run(*[values[which.index(i)] if i in which else a for i, a in enumerate(s.args)])
    with np.errstate(all="ignore"):
        for _ in range(3):
            xs, ys = [[noise(s.args[i], rng) for i in which] for _ in range(2)]
            both = at([(2 * x - 3 * y).astype(x.dtype) for x, y in zip(xs, ys)])
            for b, x, y in zip(both, at(xs), at(ys)):
                wide = np.complex128 if dtypes.is_complex(b.dtype) else np.float64
                tolerance = 1e-3 if dtypes.bits(b.dtype) >= 32 else 0.1
                if not np.allclose(
                    b.astype(wide), 2 * x.astype(wide) - 3 * y.astype(wide), rtol=tolerance, atol=tolerance
                ):
                    return False
    return True


def test_what_is_linear_is_transposed_and_nothing_else(exercised):
    """<ct, f(x)> = <transposed(ct), x> for each set of operands in which all samples of a primitive are linear."""
    rng = np.random.default_rng(0)
    transposed, claims, count = set(), [], 0
    for primitive, kept in exercised[1].items():
        if primitive.name in ALMOST_LINEAR:
            continue
        sets = [(s, linear_sets(s, rng)) for s in kept.values()]
        if isinstance(primitive.transpose, NotLinear):
            always = [s for s, found in sets if found]
            if always and len(always) == len([s for s, _ in sets if any(dtypes.is_inexact(a.dtype) for a in s.args)]):
                claims.append(f"{primitive} says that it is not linear, and it is: {always[0]}")
            continue
        if isinstance(primitive.transpose, Unsupported):
            continue
        for s, found in sets:
            found = list(found)
            for which in found:
                function = lambda *xs, s=s, which=which: s.primitive.bind(
                    *[xs[which.index(i)] if i in which else a for i, a in enumerate(s.args)], **s.params
                )
                xs = [noise(s.args[i], rng) for i in which]
                outs = s.run(*[xs[which.index(i)] if i in which else a for i, a in enumerate(s.args)])
                cts = [noise(o, rng) for o in outs]
                back = weft.make_jaxpr(
                    lambda cts, f=function, xs=xs, many=primitive.multiple_results: weft.linear_transpose(f, *xs)(
                        cts if many else cts[0]
                    )
                )
                try:
                    given = interpret(back(cts), cts)
                # it says why: an operand that the sample does not use is none that it is linear in
                except NotImplementedError:
                    found += [
                        w
                        for w in itertools.combinations(which, len(which) - 1)
                        if w and w not in found and is_linear(s, w, rng)
                    ]
                    continue
                dot = lambda a, b: np.real(np.sum(a.astype(np.complex128) * b.astype(np.complex128)))
                left, right = sum(map(dot, cts, outs)), sum(map(dot, given, xs))
                tolerance = 2e-3 if all(dtypes.bits(o.dtype) >= 32 for o in outs) else 0.3
                if not np.isclose(left, right, rtol=tolerance, atol=tolerance):
                    claims.append(f"{s}: transposed in {which}, <ct, f(x)> is {left} and <transposed(ct), x> {right}")
                transposed.add(primitive.name)
                count += 1
    assert not claims, "\n".join(claims)
    transposable = {n for n, p in OURS.items() if not isinstance(p.transpose, Unsupported)}
    assert transposable - transposed == set(NOT_ALONE) and count > 150


def other_settings():
    """Each option of which traced programs depend, with a value that it does not have now."""
    for option in config.traced_options:
        now = option.get()
        if option.kind is bool:
            yield option, not now
        elif option.choices is not None:
            yield from ((option, choice) for choice in option.choices if choice != now)


def test_what_is_remembered_of_types_depends_on_no_option(exercised):
    """`Primitive.abstract_eval` remembers results by types and parameters alone, unless the primitive has no cache."""
    remembered = [s for s in samples(exercised) if s.primitive.cache is not None]
    assert len(remembered) > 200

    def answer(sample, narrowed):
        avals = [
            a.update(dtype=narrowed) if narrowed and dtypes.is_float(a.dtype) else a for a in map(get_aval, sample.args)
        ]
        try:
            return str(sample.primitive.abstract(*avals, **sample.params))
        except Exception as e:  # noqa: BLE001  an answer as well
            return repr(e)

    def answers():
        return [(answer(s, None), answer(s, dtypes.dtype("float16"))) for s in remembered]

    usual = answers()
    for option, value in other_settings():
        before = option.set_here(value)
        try:
            for s, a, b in zip(remembered, usual, answers(), strict=True):
                assert a == b, f"{option.public}={value!r} changes {s}; set {s.primitive}_p.cache = None"
        finally:
            option.restore(before)


def test_rules_for_xla_are_of_primitives_that_exist():
    need("cpu")
    from weft_native.lower.registry import broadcasting, rules

    assert set(rules) <= set(registry) and broadcasting <= set(rules)
