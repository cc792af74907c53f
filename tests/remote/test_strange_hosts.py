"""A client whose host gives invalid answers."""

import contextlib
import threading

import numpy as np
import pytest
import weft
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve
from weft_remote import backend as remote
from weft_remote import protocol as p
from weft_remote.errors import ProtocolError

WELCOME = p.encode(p.Welcome("0f", b"s" * 16, 0, 0, 1 << 20, 1 << 20, ("cpu", "cpu")))


@contextlib.contextmanager
def host(welcome, answers):
    """The address of a host that answers each message of a class in `answers` as that says, and is silent otherwise."""

    def talk(socket):
        with contextlib.suppress(ConnectionClosed):
            socket.send(welcome)
            while True:
                for message in p.decode(socket.recv()):
                    if type(message) in answers:
                        answer = answers[type(message)](message.op)
                        socket.send(p.encode(*(answer if isinstance(answer, list) else [answer])))

    with serve(talk, "127.0.0.1", 0, compression=None, subprotocols=[p.SUBPROTOCOL]) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


def test_text_in_the_place_of_a_frame():
    with host("welcome", {}) as url, pytest.raises(ProtocolError, match="a frame is binary"):
        remote.connect(url, token="")


def test_text_in_the_place_of_an_array():
    with host(WELCOME, {p.Fetch: lambda op: p.Text(op, "three")}) as url, remote.connect(url, token="") as session:
        x = weft.device_put(np.zeros(1 << 15, np.float32), session.devices()[0])  # too large to be remembered
        with pytest.raises(ProtocolError, match="no bytes where an array is asked for"):
            np.asarray(x)


def test_no_text_in_the_place_of_one():
    with host(WELCOME, {p.Inspect: p.Ready}) as url, remote.connect(url, token="") as session:
        x = weft.device_put(np.float32(1), session.devices()[0])
        compiled = weft.jit(lambda x: x + 1).lower(x).compile()
        with pytest.raises(ProtocolError, match="no text where one is asked for"):
            compiled.as_text()


@pytest.mark.parametrize(
    "offset,size",
    [(0, 1 << 17), (8, (1 << 17) + 8), (0, 8)],
    ids=["complete", "not from where it stopped", "more than it said"],
)
def test_bytes_of_an_array_that_were_not_announced(offset, size):
    sent = lambda op: p.Data(op, size, offset, bytes(1 << 17))
    with host(WELCOME, {p.Fetch: sent}) as url, remote.connect(url, token="") as session:
        x = weft.device_put(np.ones(1 << 15, np.float32), session.devices()[0])
        if (offset, size) == (0, 1 << 17):
            assert not np.asarray(x).any()
        else:
            with pytest.raises(ProtocolError, match="of a reply of which 0 are here"):
                np.asarray(x)
