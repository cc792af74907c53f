"""Writes the functions of MATH_LARGE that the wheels carry, as the emitter makes them now.

python tools/large_functions.py
"""

import base64
import zlib
from pathlib import Path

from weft_wasm.emit_wasm import large
from weft_wasm.ir.nodes import MATH_LARGE

TARGET = Path(large.__file__).with_name("large_data.py")
# of a number; of a vector, as engines without and with relaxed SIMD have them
KINDS = [
    (dtype, *form) for dtype, lanes in (("f32", 4), ("f64", 2)) for form in ((0, False), (lanes, False), (lanes, True))
]
WIDTH = 112
HEAD = '''"""Functions of MATH_LARGE, compressed. tools/large_functions.py writes this file."""

# (dtype, lanes, relaxed): ({name: (how many locals, bytes of code)}, the types of the locals and the code of each)
PREPARED: dict[tuple[str, int, bool], tuple[dict[str, tuple[int, int]], str]] = {
'''


def data_module() -> str:
    """The text of large_data.py."""
    text = HEAD
    for kind in KINDS:
        made = {name: large.make_large_code(name, *kind) for name in sorted(MATH_LARGE)}
        sizes = {name: (len(types), len(code)) for name, (types, code) in made.items()}
        packed = base64.b64encode(zlib.compress(b"".join(types + code for types, code in made.values()), 9)).decode()
        entry = ", ".join(f'"{name}": {size}' for name, size in sizes.items())
        text += "    {}: (\n        {{{}}},\n".format(str(kind).replace("'", '"'), entry)
        rows = [packed[at : at + WIDTH - 10] for at in range(0, len(packed), WIDTH - 10)]
        text += "".join(f'        "{row}"\n' for row in rows).removesuffix("\n") + ",\n    ),\n"
    return text + "}\n"


if __name__ == "__main__":
    TARGET.write_text(data_module())
