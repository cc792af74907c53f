"""Checks that an error is intended: its message has words and the place, and no path of the process that raises it."""

from __future__ import annotations

import dis
import pathlib
import random

from weft.core.jaxpr import Jaxpr
from weft.serialization.binary import DeserializationError
from weft.serialization.programs import deserialize

ROOT = pathlib.Path(__file__).resolve().parents[2]
_RAISE = dis.opmap["RAISE_VARARGS"]


def origin(e: BaseException) -> BaseException:
    while e.__cause__ is not None:
        e = e.__cause__
    return e


def deliberate(e: BaseException) -> bool:
    """Whether somebody wrote `raise` for this, in code of ours, instead of Python or NumPy tripping over it."""
    if isinstance(e, (AssertionError, RecursionError, MemoryError)):
        return False
    tb = e.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None:
        return False
    code = tb.tb_frame.f_code
    return code.co_filename.startswith(str(ROOT)) and code.co_code[tb.tb_lasti] == _RAISE


def unclear(e: Exception, placed: bool = True) -> str | None:
    """What is wrong with an error that a stranger would be told; one that is `placed` says at which byte."""
    text = str(e)
    root = origin(e)
    if not deliberate(root):
        return f"an accident: {type(root).__name__}: {root}"
    if placed and "(at byte " not in text:
        return "it does not say where"
    if str(ROOT) in text or "Traceback" in text or "site-packages" in text or text.count("\n") > 10 or len(text) > 4000:
        return "it shows the process, or too much"
    return None


def read_changed(program: bytes, rng: random.Random) -> Jaxpr | None:
    """What is read of a program of which some bytes are changed, if it is accepted; a refusal must be deliberate."""
    mutant = bytearray(program)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(mutant))
        mutant[at] = rng.choice((mutant[at] ^ 1 << rng.randrange(8), rng.randrange(256)))
    try:
        return deserialize(bytes(mutant)).jaxpr
    except DeserializationError as e:
        assert deliberate(origin(e)), origin(e)
        return None
