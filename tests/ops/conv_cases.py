"""Convolutions and windows in odd configurations, as expressions of `lax`, evaluated by weft and
(make_conv_expected.py) by real JAX.
"""

import itertools

import numpy as np


def array(*shape, dtype="float32"):
    """The same odd numbers in both worlds."""
    n = int(np.prod(shape))
    values = np.sin(np.arange(n) * 1.7 + 0.3 * len(shape)) * 3
    return values.reshape(shape).astype(dtype)


CONVOLUTIONS = []  # (operand shape, kernel shape, keywords)


def _add(x, k, strides, padding, **more):
    CONVOLUTIONS.append((x, k, dict(window_strides=strides, padding=padding, **more)))


for padding, stride in itertools.product(("SAME", "VALID", "SAME_LOWER", [(3, 0)], [(-1, -2)], [(0, -3)]), (1, 2, 3)):
    _add((2, 3, 9), (4, 3, 4), (stride,), padding)
for left, right, padding in itertools.product((1, 2, 3), (1, 2), ([(0, 0)], [(2, -1)], [(-2, 4)])):
    _add((1, 2, 6), (3, 2, 3), (2,), padding, lhs_dilation=(left,), rhs_dilation=(right,))
for groups in (2, 3, 6):
    _add((2, 6, 7), (6, 6 // groups, 3), (2,), "SAME", feature_group_count=groups, rhs_dilation=(2,))
    _add((6, 2, 7), (6, 2, 3), (1,), [(1, -1)], batch_group_count=groups, lhs_dilation=(2,))
for lhs, rhs, out in (
    ("NCHW", "OIHW", "NCHW"),
    ("NHWC", "HWIO", "NHWC"),
    ("CHWN", "IHWO", "HWNC"),
    ("NWHC", "WOHI", "CNHW"),
    ("HNCW", "HWOI", "WNHC"),
):
    sizes = dict(N=2, C=4, H=5, W=6)
    kernel = dict(O=4, I=2, H=3, W=2)
    _add(
        tuple(sizes[c] for c in lhs),
        tuple(kernel[c] for c in rhs),
        (2, 1),
        [(1, 0), (0, 2)],
        dimension_numbers=(lhs, rhs, out),
        feature_group_count=2,
        rhs_dilation=(1, 2),
    )
_add((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), (1, 2, 1), "SAME")
_add((4, 5), (3, 5), (), [])
_add((1, 1, 3), (2, 1, 5), (1,), "VALID")  # no window fits
_add((1, 2, 5), (3, 2, 5), (1,), "VALID")  # one does
_add((2, 2, 5), (3, 2, 1), (3,), "SAME")

TRANSPOSED = [
    dict(strides=(s, 1), padding=p, transpose_kernel=t, rhs_dilation=(1, d))
    for s, p, t, d in itertools.product((1, 2, 4), ("SAME", "VALID", [(1, 1), (0, 2)]), (False, True), (1, 2))
]
TRANSPOSED += [dict(strides=(2, 3), padding=[(1, 0), (2, 1)], use_consistent_padding=True)]
PATCHES = [
    dict(filter_shape=(2, 3), window_strides=s, padding=p, dimension_numbers=d, rhs_dilation=r)
    for s, p, d, r in itertools.product(
        ((1, 1), (2, 1)),
        ("SAME", [(1, -1), (0, 1)]),
        (("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("HWNC", "IOHW", "CNHW")),
        ((1, 1), (1, 2)),
    )
]
WINDOWS = [
    dict(window_dimensions=w, window_strides=s, padding=p, base_dilation=b, window_dilation=d)
    for w, s, p, (b, d) in itertools.product(
        ((2, 3), (1, 4)),
        ((1, 1), (2, 3)),
        ("SAME", "VALID", [(1, 1), (-1, 2)]),
        (((1, 1), (1, 1)), ((2, 1), (1, 1)), ((1, 1), (1, 2))),
    )
]


def evaluate(jax, lax) -> dict:
    """Name -> value, or (value, *cotangents) for what is differentiable."""
    out = {}

    def pulled(name, f, *args):
        value, pull = jax.vjp(f, *args)
        out[name] = [value, *pull(array(*value.shape, dtype=str(value.dtype)))]

    for x, k, keywords in CONVOLUTIONS:
        pulled(
            f"conv {x} {k} {keywords}",
            lambda a, b, keywords=keywords: lax.conv_general_dilated(a, b, **keywords),
            array(*x),
            array(*k),
        )
    for keywords in TRANSPOSED:
        k = (3, 2, 4, 2) if keywords.get("transpose_kernel") else (3, 2, 2, 4)
        pulled(
            f"conv_transpose {keywords}",
            lambda a, b, keywords=keywords: lax.conv_transpose(a, b, **keywords),
            array(2, 3, 4, 2),
            array(*k),
        )
    for keywords in PATCHES:
        pulled(
            f"patches {keywords}",
            lambda a, keywords=keywords: lax.conv_general_dilated_patches(a, **keywords),
            array(4, 5, 3, 4),
        )
    pulled(
        "local", lambda a, b: lax.conv_general_dilated_local(a, b, (2,), "SAME", (3,)), array(2, 2, 7), array(4, 6, 4)
    )
    pulled(
        "local layouts",
        lambda a, b: lax.conv_general_dilated_local(
            a, b, (2, 1), "VALID", (3, 2), dimension_numbers=("NHWC", "HWIO", "HNWC")
        ),
        array(2, 7, 4, 2),
        array(3, 3, 12, 5),
    )
    for keywords in WINDOWS:
        for name, combine, init in (("sum", lax.add, 0.0), ("max", lax.max, -np.inf), ("min", lax.min, np.inf)):
            f = lambda a, combine=combine, init=init, keywords=keywords: lax.reduce_window(a, init, combine, **keywords)
            if name != "sum" and (
                not isinstance(keywords["padding"], str)
                or keywords["base_dilation"] != (1, 1)
                or keywords["window_dilation"] != (1, 1)
            ):
                out[f"window {name} {keywords}"] = [f(array(5, 6))]  # JAX has no cotangents of these
            else:
                pulled(f"window {name} {keywords}", f, array(5, 6))
        out[f"window mul {keywords}"] = [lax.reduce_window(array(5, 6), np.float32(1), lax.mul, **keywords)]
    ints = array(5, 6, dtype="int32")
    out["window int"] = [
        lax.reduce_window(ints, np.int32(0), lax.add, (2, 2), (1, 2), "SAME"),
        lax.reduce_window(ints, np.int32(-(2**31)), lax.max, (2, 2), (1, 2), "SAME"),
    ]
    pairs = lax.reduce_window(
        (array(7), array(7) * 2),
        (np.float32(0), np.float32(1)),
        lambda a, b: (a[0] + b[0], a[1] * b[1]),
        (3,),
        (2,),
        "VALID",
    )
    out["window of two"] = list(pairs)
    out["conv int"] = [lax.conv(array(2, 2, 5, dtype="int32"), array(3, 2, 2, dtype="int32"), (1,), "SAME")]
    return {
        name: [[str(np.asarray(v).dtype), list(np.shape(v)), np.asarray(v, "float64").ravel().tolist()] for v in values]
        for name, values in out.items()
    }
