"""Damaged frames over real connections: the host answers each clearly, and other sessions notice nothing.

WEFT_HOSTILE_LIVE_FRAMES    how many (default: 3,000)
"""

import asyncio
import hashlib
import os
import random

import numpy as np
import pytest
import weft
from hosts import TOKEN, run_host
from example_programs import PROGRAMS
from raw import F32, ONES, program
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from weft_remote import errors
from weft_remote import protocol as p

FRAMES, CONNECTIONS = int(os.environ.get("WEFT_HOSTILE_LIVE_FRAMES", 3_000)), 8
# A loop that never ends would take the time of its limit; what is run here is straight-line code.
RUN = ("arithmetic", "integers", "product", "gather", "scatter", "sort", "jit in jit", "cond")


def mutate(rng, data: bytes) -> bytes:
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, kind = rng.randrange(len(data) + 1), rng.randrange(6)
        if kind == 0:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 1 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[at : at + rng.randrange(1, 12)]
        elif kind == 3:
            data[at:at] = rng.randbytes(rng.randrange(1, 12))
        elif kind == 4:
            data[at : at + 1] = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"  # a large number where a length may be
        else:
            del data[at:]
    return bytes(data) or b"\x00"


class Fuzzer:
    def __init__(self, url: str):
        self.url, self.sent, self.ended, self.survived, self.answers = url, 0, 0, 0, set()
        self.programs = [program(name) for name in RUN]
        self.sources = [program(name)[0] for name in PROGRAMS]

    def frame(self, rng, op: int) -> bytes:
        """A damaged frame that would be operation `op`, or a greeting, or anything."""
        data, digest, n_args, n_outs = rng.choice(self.programs)
        kind = rng.randrange(10)
        if kind == 0:
            return rng.randbytes(rng.randrange(1, 60))
        if kind <= 3:  # a damaged program that comes with its own hash
            data = mutate(rng, rng.choice(self.sources))
            return p.encode(p.Program(op, hashlib.sha256(data).digest(), len(data), data))
        message = rng.choice(
            [
                p.Put(op, 100 + op, F32, 0, ONES),
                p.Part(op, 1, b"abc"),
                p.Program(op, digest, len(data), data),
                p.ProgramPart(op, digest, b"abc"),
                p.Compile(op, 200 + op, self.programs[0][1], 0, "f", (False,)),
                p.Execute(op, 2, (1,), (300 + op,)),
                p.Fetch(op, 1),
                p.Wait(op, 1),
                p.Free(op, (1,)),
                p.Inspect(op, 2, "text", ""),
                p.Ping(op),
                p.Settled((op,)),
                p.Credit(op, 4),
                p.Bye(),
            ]
        )
        return mutate(rng, p.encode(message))

    async def connection(self, rng) -> None:
        """Sends damaged frames on one connection until the host ends it; a ping after each tells whether it has."""
        data, digest, n_args, _ = self.programs[0]
        try:
            login = p.offered(TOKEN, b"")
            if rng.random() < 0.1:
                self.sent += 1
                login[1] = "weft-token." + mutate(rng, TOKEN.encode()).hex()
            address = f"{self.url}/session"
            async with connect(
                address, subprotocols=login, compression=None, max_size=None, ping_interval=None
            ) as socket:
                first = next(iter(p.decode(await socket.recv())))
                if isinstance(first, p.End):
                    self.note(first)
                    return
                start = [
                    p.Put(1, 1, F32, 0, ONES),
                    p.Program(2, digest, len(data), data),
                    p.Compile(3, 2, digest, 0, "f", (False,) * n_args),
                ]
                await socket.send(p.encode(*start))
                op = 4
                for _ in range(20):
                    self.sent += 1
                    await socket.send(self.frame(rng, op))
                    # whether or not the frame was an operation, the second of these comes in order
                    await socket.send(p.encode(p.Ping(op), p.Ping(op + 1)))
                    while True:
                        messages = list(p.decode(await socket.recv()))
                        for message in messages:
                            self.note(message)
                        if any(isinstance(m, p.End) for m in messages):
                            self.ended += 1
                            return
                        if any(isinstance(m, p.Ready) and m.op == op + 1 for m in messages):
                            break
                    self.survived += 1
                    op += 2
        except ConnectionClosed as e:
            self.answers.add(f"closed {e.rcvd.code if e.rcvd else None}")
        except (OSError, InvalidHandshake) as e:
            pytest.fail(f"the host does not answer any more: {e}")

    def note(self, message) -> None:
        if isinstance(message, p.End):
            assert message.error in (
                "DeserializationError",
                "ProtocolError",
                "LimitError",
                "AuthenticationError",
                "ConnectionLost",
            ), message
            assert message.message
            self.answers.add(message.error)

    async def run(self) -> None:
        async def worker(seed):
            rng = random.Random(seed)
            while self.sent < FRAMES:
                await asyncio.wait_for(self.connection(rng), 30)

        await asyncio.gather(*[worker(seed) for seed in range(CONNECTIONS)])


@pytest.mark.slow
def test_damaged_frames(tmp_path):
    with run_host(
        tmp_path,
        "--session-bytes",
        "4000000",
        "--seconds",
        "20",
        "--log-level",
        "error",
        "--grace",
        "1",
        "--sessions",
        "4000",
        "--workers",
        "device",  # thousands of sessions come and go, and what one breaks, the witness notices
    ) as host:
        with host.connect() as witness:
            x = weft.device_put(np.arange(5, dtype=np.float32), witness.devices()[0])
            fuzzer = Fuzzer(host.url)
            asyncio.run(fuzzer.run())
            assert float((x * x).sum()) == 30.0  # a session that was there all the time
            assert witness.stats.connections == 1
        with host.connect() as healthy:
            assert weft.device_put(np.ones(3, np.float32), healthy.devices()[0]).sum().item() == 3.0
        log = host.log.read_text()
    assert fuzzer.sent >= FRAMES and fuzzer.ended > FRAMES // 4 and fuzzer.survived > FRAMES // 50
    assert {"DeserializationError", "ProtocolError", "AuthenticationError"} <= fuzzer.answers, fuzzer.answers
    assert "Traceback" not in log, log[-3000:]  # nothing came as a surprise
    assert issubclass(errors.ProtocolError, weft.errors.BackendError)
