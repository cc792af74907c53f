"""docs/internals is correct: its toys compute the same as weft, and the names in it exist."""

import functools
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from platforms import need, on

import weft
import weft.numpy as jnp

INTERNALS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "internals"
sys.path.append(str(INTERNALS))  # last: the names of the toys are short
sys.path.append(str(INTERNALS / "toys"))
import reading_path as path  # noqa: E402

TOYS = sorted(f for f in (INTERNALS / "toys").iterdir() if f.suffix in (".py", ".mjs"))
PAGES = sorted(INTERNALS.glob("*.md"))
X, Y = np.array([0.5, -1.25, 2.0], np.float32), np.array([3.0, 0.25, -0.75], np.float32)


def prose(page):
    """The text of a page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.S)


def blocks(page, language):
    return re.findall(rf"```(?:{language})\n(.*?)```", page.read_text(), re.S)


def links(page):
    return re.findall(r"\]\(([^)#]+)", prose(page))


def close(toy, real, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(toy), np.asarray(real), rtol=tolerance, atol=tolerance)


# the toys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("toy", TOYS, ids=lambda f: f.name)
def test_a_toy_has_at_most_50_lines_and_does_not_import_weft(toy):
    lines = [line for line in toy.read_text().splitlines() if line.strip()]
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 120
    assert not [line for line in lines if re.match(r"\s*(from|import) weft", line)]


@functools.cache
def printed(toy):
    done = subprocess.run([sys.executable, toy], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("toy", [f for f in TOYS if f.suffix == ".py"], ids=lambda f: f.name)
def test_a_toy_runs_by_itself(toy):
    assert printed(toy).strip()


def test_the_tracer_writes_the_equations_that_weft_writes():
    import tracer

    toy = tracer.make_jaxpr(lambda x, y: tracer.sin(x * y) + 3.0 * x, 1.0, 2.0)
    real = weft.make_jaxpr(lambda x, y: jnp.sin(x * y) + 3.0 * x)(1.0, 2.0)
    names = {"multiply": "mul"}
    assert [names.get(e[1].name, e[1].name) for e in toy.equations] == [e.primitive.name for e in real.eqns]
    close(tracer.evaluate(toy, 0.5, -2.0), weft.jit(lambda x, y: jnp.sin(x * y) + 3.0 * x)(0.5, -2.0))


def test_forward_mode():
    import jvp
    import tracer

    toy = jvp.jvp(lambda x, y: tracer.sin(x * y) + x, [X, Y], [Y, X])
    real = weft.jvp(lambda x, y: jnp.sin(x * y) + x, (X, Y), (Y, X))
    for a, b in zip(toy, real):
        close(a, b)
    third = jvp.derivative(jvp.derivative(jvp.derivative(lambda x: tracer.sin(x * x))))
    close(third(0.5), weft.grad(weft.grad(weft.grad(lambda x: jnp.sin(x * x))))(0.5))


def test_an_inner_derivative_takes_the_values_of_an_outer_one_for_constants():
    import jvp

    toy = jvp.derivative(lambda x: x * jvp.derivative(lambda y: x + y)(2.0))
    close(toy(3.0), weft.grad(lambda x: x * weft.grad(lambda y: x + y)(2.0))(3.0))


def test_reverse_mode():
    import reverse
    import tracer

    loss = lambda x, y: reverse.total(tracer.sin(x * y) + x * 3.0)
    for a, b in zip(reverse.grad(loss)(X, Y), weft.grad(lambda x, y: jnp.sum(jnp.sin(x * y) + x * 3.0), (0, 1))(X, Y)):
        close(a, b)
    second = reverse.grad(lambda x: reverse.total(reverse.grad(loss)(x, Y)[0] * x))(X)[0]
    real = lambda x: jnp.sum(jnp.sin(x * Y) + x * 3.0)
    close(second, weft.grad(lambda x: jnp.sum(weft.grad(real)(x) * x))(X))


def test_vmap_of_a_gradient():
    import reverse
    import tracer
    import vmap

    stack = np.stack([X, Y, X + Y, X * Y])
    gradient = lambda w, x: reverse.grad(lambda w: reverse.total(tracer.sin(w * x)))(w)[0]
    real = weft.vmap(weft.grad(lambda w, x: jnp.sum(jnp.sin(w * x))), (None, 0))
    close(vmap.vmap(gradient, (None, 0))(X, stack), real(X, stack))
    close(vmap.vmap(lambda s, x: s * x, (0, None))(X, Y), weft.vmap(lambda s, x: s * x, (0, None))(X, Y))


def test_control_flow_takes_one_branch_and_is_transformed():
    import cond
    import jvp
    import tracer
    import vmap

    toy = lambda which, x: cond.cond(which, tracer.sin, lambda x: x * x, x)
    real = lambda which, x: weft.lax.cond(which, jnp.sin, lambda x: x * x, x)
    for which in (True, False):
        close(toy(which, 0.5), real(which, 0.5))
        close(jvp.derivative(functools.partial(toy, which))(0.5), weft.grad(real, 1)(which, 0.5))
    several = np.array([True, False, True])
    for axes in ((0, 0), (0, None)):
        x = X if axes[1] == 0 else 0.5
        close(vmap.vmap(toy, axes)(several, x), weft.vmap(real, axes)(several, x))
    close(vmap.vmap(toy, (None, 0))(True, X), weft.vmap(real, (None, 0))(True, X))


def test_jit_traces_once_for_a_type_and_compiles_once_for_a_device():
    import jit
    import tracer

    traces, compiled = [], []
    device = jit.Device("counting", lambda jaxpr: compiled.append(jaxpr) or jit.compiler(jaxpr))
    toy = jit.jit(lambda x, y: traces.append(0) or tracer.sin(x) * y)
    real_traces = []
    real = weft.jit(lambda x, y: real_traces.append(0) or jnp.sin(x) * y)
    with tracer.tracing(jit.Dispatch()):
        for x, y in ((X, Y), (Y, X), (X[:2], Y[:2]), (X, X)):
            out = toy(jit.Array(x, device), y)
            close(out.value, real(x, y))
            assert out.device is device
        assert len(traces) == len(real_traces) == len(compiled) == 2
        close((out + 1.0).value, real(X, X) + 1.0)
        assert (out + 1.0).device is device
        assert len(compiled) == 3  # the addition, once


@pytest.mark.parametrize("name", ["one loop", "two loops", "a sum alone"])
def test_the_kernel_compiler(name):
    need("wasm")
    import kernel
    import reverse
    import tracer

    sin, total = tracer.sin, reverse.total
    toy, real = {
        "one loop": (lambda x, y: sin(x) * y + 2.0 * x, lambda x, y: jnp.sin(x) * y + 2.0 * x),
        "two loops": (lambda x, y: x * total(sin(x) * y), lambda x, y: x * jnp.sum(jnp.sin(x) * y)),
        "a sum alone": (lambda x, y: total(sin(x) * y), lambda x, y: jnp.sum(jnp.sin(x) * y)),
    }[name]
    with on("wasm"):
        compiled = weft.jit(real).lower(X, Y).compile()
        close(kernel.run(toy, X, Y), compiled(X, Y))
    loops = kernel.lower(tracer.make_jaxpr(toy, X, Y)).count("(loop")
    kernels = compiled.cost_analysis()["kernels"]
    assert loops == kernels + (name == "a sum alone")  # the toy stores a scalar in a loop of one step


def test_the_page_runs_a_program_that_weft_compiled(tmp_path):
    need("wasm", "node")
    f = lambda x, y: (x * jnp.sum(jnp.sin(x) * y), x + 1.0)
    with on("wasm"):
        compiled = weft.jit(f).lower(X, Y).compile()
        wanted = [x.tolist() for x in compiled(X, Y)]
    (tmp_path / "program.weft").write_bytes(compiled.runtime_executable().as_bytes())
    command = ["node", INTERNALS / "toys" / "page.mjs", tmp_path / "program.weft", json.dumps([X.tolist(), Y.tolist()])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == wanted


# the text ------------------------------------------------------------------------------------------------------------


def test_the_path_has_at_most_3000_lines():
    """And each file and name of it exists: `path_of` raises otherwise."""
    parts = [part for chapter in path.chapters() for part in path.path_of(chapter)]
    lines = {(part.file, k) for part in parts for k in range(part.first, part.last + 1)}
    assert len(lines) <= path.MOST


def test_each_chapter_is_listed_and_names_code():
    assert sorted([*path.chapters(), INTERNALS / "README.md"]) == PAGES
    assert all(path.path_of(chapter) for chapter in path.chapters())


def test_a_name_that_is_gone_is_found(tmp_path):
    chapter = tmp_path / "chapter.md"
    (tmp_path / "code.py").write_text("class A:\n    def f(self):\n        pass\n\n\nB = 1\n")
    chapter.write_text("| [code.py](code.py) | `A.f`, `B` | all |\n")
    assert [part.lines for part in path.path_of(chapter)] == [2, 1]
    for row in ("| [code.py](code.py) | `A.g` | all |", "| [gone.py](gone.py) | `A` | all |"):
        chapter.write_text(row)
        with pytest.raises(LookupError, match="names (A.g|gone.py)"):
            path.path_of(chapter)


@pytest.mark.parametrize("page", PAGES, ids=lambda f: f.name)
def test_links_lead_somewhere(page):
    assert links(page)
    assert [link for link in links(page) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", path.chapters(), ids=lambda f: f.name)
def test_code_in_the_text_stands_in_a_toy(page):
    toys = "\n".join(toy.read_text() for toy in TOYS)
    assert blocks(page, "python|js")
    assert [block for block in blocks(page, "python|js") if block not in toys] == []


@pytest.mark.parametrize("page, toy", [("tracing.md", "tracer.py"), ("transforms.md", "reverse.py")])
def test_what_a_toy_prints_is_what_the_text_shows(page, toy):
    shown = blocks(INTERNALS / page, "text")
    assert shown
    assert [block for block in shown if block not in printed(INTERNALS / "toys" / toy)] == []


def test_what_the_compiler_makes_is_what_the_text_shows():
    need("wasm")
    from weft_wasm.compile import compile_program
    from weft_wasm.ir.text import describe

    x = np.ones(1000, np.float32)
    with on("wasm"):
        compiled = weft.jit(lambda x, y: x * jnp.sum(jnp.sin(x) * y)).lower(x, x).compile().runtime_executable()
    after = []
    compile_program(compiled.program, after=lambda step, program: after.append(describe(program)))
    shown = "\n".join([compiled.as_text("groups"), *after, ""])
    assert [block for block in blocks(INTERNALS / "kernel-compiler.md", "text") if block not in shown] == []


@pytest.mark.parametrize("page", path.chapters(), ids=lambda f: f.name)
def test_names_in_the_text_stand_in_the_code(page):
    """Each name in backquotes occurs in a file that the chapter links to, or in a toy."""
    files = {*TOYS, *[(page.parent / link).resolve() for link in links(page)]}
    texts = [*[f.read_text() for f in files if f.is_file()], *blocks(page, "text")]
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    named = re.findall(r"`([A-Za-z_][\w.]*)(?:\(\))?`", prose(page))
    assert sorted({name for name in named if not {*name.split(".")} <= words}) == []
