"""The cache of earlier calls, whose size is bounded."""

import numpy as np
import weft
import weft.numpy as jnp
from weft_wasm.backends import calls


def test_what_is_remembered_has_a_bound(monkeypatch):
    """More kinds of calls than there is room for: all are forgotten at once, and asked for again when they come
    again.
    """
    asked, jit = [], calls.Calls.jit

    def counted(self, miss):
        def ask(x):
            asked.append(x.shape[0])
            return miss(x)

        return jit(self, ask)

    monkeypatch.setattr(calls.Calls, "jit", counted)
    monkeypatch.setattr(calls, "CAPACITY", 2)
    f, xs = weft.jit(lambda x: x * 2), {n: jnp.arange(n) for n in (3, 4, 5)}
    for n in (3, 4, 3, 4):
        np.testing.assert_array_equal(np.asarray(f(xs[n])), np.arange(n) * 2)
    assert asked == [3, 4]
    for n in (5, 3, 3, 4, 5):  # the third is one too many
        np.testing.assert_array_equal(np.asarray(f(xs[n])), np.arange(n) * 2)
    assert asked == [3, 4, 5, 3, 4, 5]
