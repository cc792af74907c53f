"""LSTMs of several layers, in one or both directions, over sequences of different lengths. Weights lie one after
another in one vector, as cuDNN has them.

For each layer and direction come first the matrices of the inputs [4 h, inputs] and of the state [4 h, h], then, behind
all of them, two biases [4 h] each; the four blocks of rows are the input, forget, cell and output gates.
"""

from __future__ import annotations

import math
from typing import Any, Iterator

from .. import lax, nn, numpy as jnp, random
from ..base.source_info import api_boundary

__all__ = ["get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates", "unpack_lstm_weights"]


def _shapes(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[tuple[int, int, tuple]]:
    """(which part, which layer and direction, its shape), in the order in which they lie."""
    directions = 2 if bidirectional else 1
    count = num_layers * directions
    for k in range(count):
        yield 0, k, (4 * hidden_size, input_size if k < directions else directions * hidden_size)
        yield 1, k, (4 * hidden_size, hidden_size)
    for k in range(count):
        yield 2, k, (4 * hidden_size,)
        yield 3, k, (4 * hidden_size,)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """The number of weights of an LSTM.

    Args:
        input_size: the size of an input at one time; int.
        hidden_size: the size h of the state; int.
        num_layers: how many layers lie on top of each other; int.
        bidirectional: whether each layer also reads the sequence backwards; bool.

    Returns:
        an int: for each layer and direction 4 h (inputs + h + 2), where the first layer has `input_size` inputs,
        and the others have h for each direction.

    Example:
        >>> from weft.experimental import rnn
        >>> rnn.get_num_params_in_lstm(2, 3, 1, False)
        84
    """
    return sum(math.prod(shape) for *_, shape in _shapes(input_size, hidden_size, num_layers, bidirectional))


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool):
    """Random weights of an LSTM, uniform between -k and k with k = 1 / sqrt(hidden_size).

    Args:
        rng: a random key.
        input_size, hidden_size, num_layers, bidirectional: as for `get_num_params_in_lstm`.

    Returns:
        a float32 array of shape (get_num_params_in_lstm(…),).

    Example:
        >>> import weft
        >>> from weft.experimental import rnn
        >>> rnn.init_lstm_weight(weft.random.key(0), 2, 3, 1, False).shape
        (84,)
    """
    k = math.sqrt(1.0 / hidden_size)
    return random.uniform(
        rng,
        (get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional),),
        jnp.float32,
        minval=-k,
        maxval=k,
    )


def unpack_lstm_weights(
    weights, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict, dict, dict, dict]:
    """The matrices and biases that lie in a vector of weights.

    Args:
        weights: an array of any dtype, of shape (get_num_params_in_lstm(…),).
        input_size, hidden_size, num_layers, bidirectional: as for `get_num_params_in_lstm`.

    Returns:
        (W_ih, W_hh, b_ih, b_hh), four dicts with the key layer * directions + direction. Their arrays have the
        shapes (4 h, inputs), (4 h, h), (4 h,) and (4 h,), and the dtype of `weights`.

    Raises:
        ValueError: `weights` does not have the shape that the sizes require.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import rnn
        >>> rnn.unpack_lstm_weights(jnp.zeros(84), 2, 3, 1, False)[0][0].shape
        (12, 2)
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    if jnp.shape(weights) != (count,):
        raise ValueError(
            f"unpack_lstm_weights: weights must have shape ({count},) for these sizes, got {jnp.shape(weights)}."
        )
    parts: tuple[dict, dict, dict, dict] = {}, {}, {}, {}
    start = 0
    for part, k, shape in _shapes(input_size, hidden_size, num_layers, bidirectional):
        stop = start + math.prod(shape)
        parts[part][k] = weights[start:stop].reshape(shape)
        start = stop
    return parts


def swap_lstm_gates(weights, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool):
    """Exchanges the blocks of the cell gate and the output gate. The result has the order that MIOpen uses.

    Args:
        weights: an array of any dtype, of shape (get_num_params_in_lstm(…),).
        input_size, hidden_size, num_layers, bidirectional: as for `get_num_params_in_lstm`.

    Returns:
        an array of the same shape and dtype.

    Raises:
        ValueError: `weights` does not have the shape that the sizes require.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import rnn
        >>> rnn.swap_lstm_gates(jnp.arange(16), 1, 1, 1, False)[:4].tolist()
        [0, 1, 3, 2]
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    out = []
    for part, k, _ in _shapes(input_size, hidden_size, num_layers, bidirectional):
        i, f, g, o = jnp.split(parts[part][k], 4)
        out.append(jnp.concatenate([i, f, o, g]).ravel())
    return jnp.concatenate(out)


def _one(x, h, c, w_ih, w_hh, bias, valid, reverse: bool, precision):
    """One layer in one direction: outputs [time, batch, h] and the last state. Where a sequence has ended the state
    stays and outputs are 0.
    """
    inputs = jnp.einsum("tbi,gi->tbg", x, w_ih, precision=precision) + bias

    def step(state, now):
        (h, c), (gates, on) = state, now
        i, f, g, o = jnp.split(gates + jnp.matmul(h, w_hh.T, precision=precision), 4, axis=-1)
        c2 = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        h2 = nn.sigmoid(o) * jnp.tanh(c2)
        return (jnp.where(on, h2, h), jnp.where(on, c2, c)), jnp.where(on, h2, 0)

    (h, c), y = lax.scan(step, (h, c), (inputs, valid), reverse=reverse)
    return y, h, c


@api_boundary
def lstm_ref(
    x,
    h_0,
    c_0,
    W_ih: dict,
    W_hh: dict,
    b_ih: dict,
    b_hh: dict,
    seq_lengths,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
):
    """Runs an LSTM whose weights are unpacked; see `lstm`.

    Args:
        x, h_0, c_0, seq_lengths: as for `lstm`.
        W_ih, W_hh, b_ih, b_hh: dicts of arrays, as `unpack_lstm_weights` returns them.
        input_size, hidden_size, num_layers, bidirectional: as for `get_num_params_in_lstm`.
        dropout: must be 0; float.
        precision: of the matrix products, as for `weft.numpy.matmul`.

    Returns:
        (y, h_n, c_n) as `lstm` returns them.

    Raises:
        ValueError: the shapes of x, h_0 and c_0 do not fit the sizes.
        NotImplementedError: dropout is not 0.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import rnn
        >>> parts = rnn.unpack_lstm_weights(jnp.zeros(84), 2, 3, 1, False)
        >>> state = jnp.zeros((1, 5, 3))
        >>> rnn.lstm_ref(jnp.ones((5, 7, 2)), state, state, *parts, jnp.full(5, 7), 2, 3, 1, 0., False)[0].shape
        (5, 7, 3)
    """
    if dropout:
        raise NotImplementedError(
            f"lstm: dropout={dropout} draws masks inside cuDNN; leave it 0 and drop outputs between layers of your own"
            " with weft.random.bernoulli."
        )
    directions = 2 if bidirectional else 1
    if (
        x.ndim != 3
        or x.shape[2] != input_size
        or h_0.shape != c_0.shape
        or h_0.shape != (num_layers * directions, x.shape[0], hidden_size)
    ):
        raise ValueError(
            f"lstm: x must be [batch, time, {input_size}] and h_0, c_0 [{num_layers * directions}, batch,"
            f" {hidden_size}], got {x.shape}, {h_0.shape} and {c_0.shape}."
        )
    y = jnp.swapaxes(x, 0, 1)
    valid = (jnp.arange(x.shape[1])[:, None] < jnp.asarray(seq_lengths))[..., None]
    last: list = []
    for layer in range(num_layers):
        outs = []
        for k in range(layer * directions, (layer + 1) * directions):
            out, *state = _one(
                y, h_0[k], c_0[k], W_ih[k], W_hh[k], b_ih[k] + b_hh[k], valid, k % directions == 1, precision
            )
            outs.append(out)
            last.append(state)
        y = jnp.concatenate(outs, -1)
    return jnp.swapaxes(y, 0, 1), jnp.stack([h for h, _ in last]), jnp.stack([c for _, c in last])


@api_boundary
def lstm(
    x,
    h_0,
    c_0,
    weights,
    seq_lengths,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
):
    """Runs a long short-term memory network over a batch of sequences.

    At each time the input, forget, cell and output gates are i, f, o = sigmoid(W_ih x + b_ih + W_hh h + b_hh) and g =
    tanh(…); then c' = f c + i g and h' = o tanh(c'). After the end of a sequence the state stays, and the outputs are
    0.

    Source: S. Hochreiter and J. Schmidhuber, "Long short-term memory" (1997); F. Gers et al., "Learning to forget"
    (2000).

    Args:
        x: the inputs, of shape (batch, time, input_size) and a floating-point dtype.
        h_0, c_0: the first hidden and cell states, of shape (num_layers * directions, batch, hidden_size).
        weights: an array of shape (get_num_params_in_lstm(…),), as `init_lstm_weight` makes it.
        seq_lengths: the length of each sequence: integers of shape (batch,).
        input_size, hidden_size, num_layers, bidirectional: as for `get_num_params_in_lstm`.
        dropout: must be 0; float.
        precision: of the matrix products, as for `weft.numpy.matmul`.

    Returns:
        (y, h_n, c_n): the outputs of the last layer, of shape (batch, time, directions * hidden_size), and the last
        states, of the shape of `h_0`.

    Raises:
        ValueError: the shapes do not fit the sizes.
        NotImplementedError: dropout is not 0.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import rnn
        >>> state = jnp.zeros((1, 5, 3))
        >>> y, h, c = rnn.lstm(jnp.ones((5, 7, 2)), state, state, jnp.zeros(84), jnp.full(5, 7), 2, 3, 1, 0., False)
        >>> y.shape, h.shape
        ((5, 7, 3), (1, 5, 3))
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return lstm_ref(
        x, h_0, c_0, *parts, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional, precision
    )


def __dir__() -> list[str]:
    return sorted(__all__)
