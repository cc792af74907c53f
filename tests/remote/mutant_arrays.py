"""A process in which weft is without NumPy: it reads mutants of .npy files, and asks NumPy itself what they hold.

WEFT_NUMPY=0 python mutant_arrays.py FIRST COUNT        # prints as mutant_worker.py does
"""

from __future__ import annotations

import collections
import io
import json
import pathlib
import random
import sys
import warnings

import ml_dtypes
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
warnings.simplefilter("ignore")
from mutant_files import mutant_npy  # noqa: E402
from refusals import unclear  # noqa: E402

from weft.base import host  # noqa: E402
from weft.numpy.files import _parse  # noqa: E402

assert not host.has_numpy


def written(x: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, x)
    return file.getvalue()


SOURCES = [
    written(np.arange(6, dtype=np.float32).reshape(2, 3)),
    written(np.arange(6, dtype=np.float32).reshape(2, 3).T.copy().T),
    written(np.array([True, False])),
    written(np.arange(6, dtype="<i4").reshape(2, 3)),
    written(np.float32(2)),
    written(np.ones((2, 3), ml_dtypes.bfloat16)),
]


def judge(seed: int) -> tuple[str, dict | None]:
    rng = random.Random(seed)
    data = mutant_npy(rng, rng.choice(SOURCES))
    try:
        got = _parse(data)
    except ValueError as e:
        problem = unclear(e, placed=False)
        return "refused", {"kind": "unclear refusal", "what": problem, "message": str(e)} if problem else None
    except Exception as e:
        return "refused", {"kind": "error of the reader", "what": f"{type(e).__name__}: {e}", "data": repr(data[:200])}
    try:
        want = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as e:
        return "read", {
            "kind": "read what NumPy refuses",
            "what": f"{got.dtype.name}{list(got.shape)} where NumPy says {type(e).__name__}: {e}",
            "data": repr(data[:200]),
        }
    if want.dtype == np.dtype("V2"):
        want = want.view(ml_dtypes.bfloat16)
    if (
        got.shape != want.shape
        or got.dtype.name != want.dtype.name
        or bytes(host.to_bytes(got)) != np.ascontiguousarray(want).tobytes()
    ):
        return "read", {
            "kind": "another value",
            "what": f"{got.dtype.name}{list(got.shape)} {bytes(host.to_bytes(got))!r} where NumPy reads {want!r}",
            "data": repr(data[:200]),
        }
    return "read", None


counts: collections.Counter = collections.Counter()
for number in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])):
    print(number, flush=True)
    what, found = judge(number)
    counts[what] += 1
    if found is not None:
        print(json.dumps({"seed": number, **found}), flush=True)
print(json.dumps({"counts": counts}), flush=True)
