"""Turns the Python sources in zip files and wheels into bytecode. Runs inside Pyodide, whose bytecode a page needs.

A page that finds bytecode starts five times faster than one that compiles; sources stay out of the result, so that
they are neither downloaded nor compared. `compile_archive(source, target, prefix, optimize, prune)` is called from
compile_python.mjs.
"""

import base64
import hashlib
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc

# Zip entries carry a date; a fixed one makes equal inputs give equal archives.
DATE = (2020, 1, 1, 0, 0, 0)


def compile_module(name: str, source: bytes, prefix: str, optimize: int) -> bytes:
    """The .pyc of one module, never compared with a source file (unchecked hash)."""
    code = compile(source, prefix + name, "exec", dont_inherit=True, optimize=optimize)
    return bytes(_code_to_hash_pyc(code, b"\0" * 8, False))


def record_line(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def compile_archive(source: str, target: str, prefix: str, optimize: int, prune: list[str]) -> int:
    """Rewrites the archive `source` as `target`, without what `prune` names; returns how many modules it compiled.

    `prefix` goes before the file names that tracebacks show.
    """
    pruned = set(prune)
    modules = 0
    record, record_name = [], None
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for name in sorted(old.namelist()):
            first = name.split("/")[0]
            if name.endswith("/") or first in pruned or first.removesuffix(".py") in pruned or "__pycache__" in name:
                continue
            if name.endswith(".dist-info/RECORD"):
                record_name = name
                continue
            data = old.read(name)
            if name.endswith(".py"):
                data = compile_module(name, data, prefix, optimize)
                name += "c"
                modules += 1
            record.append(record_line(name, data))
            new.writestr(zipfile.ZipInfo(name, DATE), data, zipfile.ZIP_DEFLATED)
        if record_name:
            new.writestr(
                zipfile.ZipInfo(record_name, DATE), "".join(record) + f"{record_name},,\n", zipfile.ZIP_DEFLATED
            )
    return modules
