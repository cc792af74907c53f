"""docs/accuracy.md from the rows that accuracy_measure.py has saved and the remarks of accuracy_remarks.toml."""

from __future__ import annotations

import importlib.metadata
import pathlib
import platform
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import weft
from accuracy_cases import CASES, FEW, HALVES, KINDS, PLANE, POINTS, Case, Complex, Pointwise, Whole, kinds_of
from accuracy_errors import FAR
from accuracy_exact import PRECISION
from accuracy_measure import COLUMNS, JAX, ROOT, Cell, columns_of, saved

PAGE = ROOT / "docs" / "accuracy.md"
REMARKS = pathlib.Path(__file__).with_name("accuracy_remarks.toml")
LARGE = 8.0  # ulp; a larger error needs a remark that gives the reason
IN_ULP = ("sum", "positive", "values")  # the families of functions of arrays whose errors are in ulp
HEAD = """# Accuracy

These tables give the largest error that was found of each function, on each backend, beside that of {jax} on the
CPU. `make accuracy` measures them and writes this page;
[a test](../tests/meta/test_accuracy.py) measures some again and fails if an error is larger than this page says.

**The unit** is the ulp, the unit in the last place: the distance between two neighbouring floating-point numbers of the
size of the exact result, about 10⁻⁷ of it in float32, 2·10⁻¹⁶ in float64, 10⁻³ in float16 and 8·10⁻³ in bfloat16. A
result that is rounded correctly is off by at most 0.5 ulp; one that is off by 4 ulp has lost the last three of its 24
(float32), 53 (float64), 11 (float16) or 8 (bfloat16) binary digits.
"> 10⁹" means that the result is unlike the exact one: another number where that is zero, or zero, an infinity or
NaN where it is not. The errors of decompositions, products and Fourier transforms are relative to other quantities,
which their sections define.

**The exact result** is computed by [mpmath](https://mpmath.org) with {precision} binary digits. A quicker reference
(80-bit floating point for float64, float64 for the other types) finds the worst points first, and mpmath then measures
their errors. The reference of functions of arrays is 80-bit floating point.

**The points**: an elementwise function is measured at about {points:,} points in each dtype, or {few:,}
where exact values take long: random bits, random magnitudes, the range in which the function varies, and the
neighbours of its zeros, poles and edges; one of a single argument at all float16 and bfloat16 numbers. A function of
complex numbers is measured at about {plane:,}. Of the arrays of the other functions, those are measured in float16 and
bfloat16 whose sums are numbers of the type, and no functions that jax lacks in these types. The points are the same
each time. Each number is a lower bound, because another input may be worse. The list below each table says where each
error occurs. Subnormal numbers are left out, because every backend may treat them as zero, as XLA does.

**The machine**: {machine}. Each function is compiled alone, by `jit`.

- *XLA* is the CPU through jaxlib {jaxlib}. jax uses the same compiler, so the two columns agree unless weft asks for
  another computation. A *remote* host runs XLA: its results are those of the XLA column on its machine.
- *Wasm* runs in wasmtime {wasmtime}, with relaxed SIMD, which fuses multiplications and additions, and in the next
  column without it (*plain SIMD*).
- *WebGPU* is the software adapter {adapter}, which has no float64. Other adapters may round
  some operations in other ways.

A **remark** says why a result is off by more than {large:g} ulp, or why weft is notably worse than jax:
by more than twice as much, and one ulp.
"""
SECTIONS: dict[str, tuple[Callable[[Case], bool], str]] = {
    "Elementwise functions": (lambda case: isinstance(case, Pointwise), "In ulp of the exact result."),
    "Complex functions": (
        lambda case: isinstance(case, Complex),
        (
            "The distance from the exact result in the complex plane, in ulp of its absolute value; so a part that is"
            " much smaller than the other may have few right digits. No point lies on an axis, where the branch cuts"
            " are."
        ),
    ),
    "Reductions and softmax": (
        lambda case: isinstance(case, Whole) and case.family in IN_ULP,
        (
            "In ulp of the result; for sums, running sums and means in ulp of the sum of the magnitudes, since terms"
            " that cancel leave an error of any relative size; for logarithms of sums in ulp of the result or of 1,"
            " whichever is larger."
        ),
    ),
    "Products": (
        lambda case: isinstance(case, Whole) and case.family == "product",
        (
            "In eps (2⁻²³ in float32, 2⁻⁵² in float64, 2⁻¹⁰ in float16, 2⁻⁷ in bfloat16), relative to the product of"
            " the operands' magnitudes: the largest |got − exact| / (eps · (|a| |b|)) of all elements."
        ),
    ),
    "Fourier transforms": (
        lambda case: isinstance(case, Whole) and case.family == "transform",
        "In eps, ‖got − exact‖ / ‖exact‖ of the whole result.",
    ),
    "Decompositions": (
        lambda case: isinstance(case, Whole) and case.family in ("cholesky", "lu", "qr", "eigh", "svd", "solve"),
        (
            "Backward errors in eps: ‖a − product of the factors‖ / ‖a‖ in the norm of Frobenius, or how far their"
            " columns are from being orthonormal, ‖qᵀq − 1‖ / √n, whichever is larger; of solutions ‖a x − b‖ / (‖a‖"
            " ‖x‖). They grow with the size, which is at most 100 × 100; of eigh 40 × 40 on every backend, since"
            " WebGPU's software adapter takes more than ten minutes for 100 × 100."
        ),
    ),
}
ODD = """## Zeros, infinities and NaN

Where an argument is zero, infinite or NaN and not all columns give the same zero, infinity, NaN, or some finite number.
"""


class Row(NamedTuple):
    case: Case
    kind: str
    cells: dict[str, Cell]
    remark: str


def remarks() -> dict[tuple[str, str], str]:
    """(function, dtype) -> remark."""
    found = {}
    for kinds, texts in tomllib.loads(REMARKS.read_text()).items():
        for name, text in texts.items():
            for kind in {"both": ("f32", "f64"), "halves": HALVES}.get(kinds, (kinds,)):
                found[name, kind] = " ".join([*filter(None, [found.get((name, kind))]), text])
    return found


def remarkable(case: Case, errors: dict[str, float]) -> bool:
    """Whether a row needs a remark."""
    ours = max(e for column, e in errors.items() if column != JAX)
    in_ulp = not isinstance(case, Whole) or case.family in IN_ULP
    return ours > 2 * errors[JAX] + 1 or in_ulp and ours > LARGE


def rows(kind: str) -> Iterator[Row]:
    texts = remarks()
    for name, case in CASES.items():
        if kind not in kinds_of(case):
            continue
        cells = saved(name, kind)
        lacking = [c for c in columns_of(kind) if c not in cells]
        if lacking:
            what = f"{name} in {kind} is not measured for {', '.join(lacking)}"
            raise SystemExit(f"{what}: python tools/accuracy.py '{name}'")
        yield Row(case, kind, {c: cells[c] for c in columns_of(kind)}, texts.get((name, kind), ""))


def shown(error: float) -> str:
    if error > FAR:
        return "> 10⁹"
    return f"{error:.3g}" if error < 1000 else f"{error:.1e}"


def _table(head: Sequence[str], right: int, lines: Sequence[Sequence[str]]) -> str:
    """right: how many columns after the first are numbers. No text may hold a bar, which would end its cell."""
    assert not any("|" in cell for line in lines for cell in line), "there is a bar in a cell"
    rule = ["---"] + ["--:"] * right + ["---"] * (len(head) - 1 - right)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *lines])


def tables(chosen: Sequence[Row]) -> str:
    columns = list(chosen[0].cells)
    errors = [[row.case.name, *[shown(cell.error) for cell in row.cells.values()], row.remark] for row in chosen]
    places = [[row.case.name, *[cell.where or "–" for cell in row.cells.values()]] for row in chosen]
    return "\n".join(
        [
            _table(["function", *columns, "remark"], len(columns), errors),
            "\n<details><summary>Where these errors occur</summary>\n",
            _table(["function", *[f"{c}, at" for c in columns]], 0, places),
            "\n</details>",
        ]
    )


def _same(value: str) -> str:
    """What two results must share to count as one."""
    return value if value.lstrip("-") in ("0", "inf", "nan") else "finite"


def odd(row: Row) -> Iterator[list[str]]:
    for place in next(iter(row.cells.values())).special:
        values = {c: cell.special[place] for c, cell in row.cells.items()}
        if len({_same(v) for v in values.values()}) > 1:
            yield [row.case.name, row.kind, place, *[values.get(c, "–") for c in COLUMNS]]


def machine() -> str:
    info = pathlib.Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    return f"{model.group(1) if model else platform.processor()}, {platform.system()} on {platform.machine()}"


def page() -> str:
    measured = {kind: list(rows(kind)) for kind in KINDS}
    version = importlib.metadata.version
    head = HEAD.format(
        jax=JAX,
        precision=PRECISION,
        points=POINTS,
        few=FEW,
        plane=PLANE,
        large=LARGE,
        machine=machine(),
        jaxlib=version("jaxlib"),
        wasmtime=version("wasmtime"),
        adapter=weft.devices("webgpu")[0].device_kind,
    )
    parts = [head]
    for title, (belongs, text) in SECTIONS.items():
        parts.append(f"## {title}\n\n{text}\n")
        for kind, found in measured.items():
            chosen = [row for row in found if belongs(row.case)]
            if chosen:
                parts.append(f"### {title}, {KINDS[kind].__name__}\n\n{tables(chosen)}\n")
    lines = [line for found in measured.values() for row in found for line in odd(row)]
    parts += [ODD, _table(["function", "dtype", "arguments", *COLUMNS], 0, lines)]
    return "\n".join(parts) + "\n"


def write() -> None:
    PAGE.write_text(page())
