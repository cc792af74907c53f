"""The generator makes every primitive there is: what stands in programs before anything is decomposed."""

import importlib
import pathlib
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from programs.compare import EXACT, ROUNDED
from programs.forms import form_of
from programs.maker import make
from programs.tree import Program

import weft
from weft.base.config import enable_x64
from weft.core.jaxpr import Jaxpr, subjaxprs
from weft.core.primitive import Primitive, registry

for _module in pkgutil.walk_packages(weft.__path__, "weft."):  # what they register counts
    if "__main__" not in _module.name:
        importlib.import_module(_module.name)
OURS = {name for name, p in registry.items() if p.abstract.__module__.startswith("weft.")}

# What no random program holds, and why.
LEFT_OUT = {
    "remote_callback": "a callback becomes one on its way to a host: tests/remote/test_callbacks.py",
    "debug_report": "a callback becomes one on its way to a host: tests/remote/test_reports.py",
    "ffi_call": "it calls compiled code, which only XLA has: tests/native/test_xla_foreign.py",
    "dim_as_value": "it is a size that a program leaves open, and these programs are run: tests/core/test_symbolic.py",
}
# What programs ask for, and what is gone when they have been traced.
GONE = {
    "stage": "tracing is what it asks for",
    "custom_lin": "it stands for a derivative until that is transposed",
}
SEEDS, FEW = range(3000), 3
CALLS = re.compile(r"\b(?:over_rows\(lambda x: )?(?:lax|jnp|weft)\.[\w.]+|\b[a-z_]+(?=[(=])")


def names(jaxpr: Jaxpr) -> Iterator[str]:
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        for inner in subjaxprs(eqn.params):
            yield from names(inner)


def of_new_calls() -> Iterator[Program]:
    """The programs that call something that few before them have called in their form: what the source calls may be
    in a function that nothing traces.
    """
    called = Counter()
    for seed in SEEDS:
        program = make(seed)
        calls = {(name, "vjp" in program.form) for name in CALLS.findall(program.source())}
        if any(called[call] < FEW for call in calls):
            called.update(calls)
            yield program


def test_the_programs_hold_every_primitive(monkeypatch):
    bound, found = set(), set()
    bind = Primitive.bind
    monkeypatch.setattr(
        Primitive, "bind", lambda self, *args, **params: bound.add(self.name) or bind(self, *args, **params)
    )
    wanted = OURS - LEFT_OUT.keys() - GONE.keys()
    for program in of_new_calls():
        with enable_x64(program.x64):
            form = form_of(program)
            found.update(names(weft.make_jaxpr(form.call)(*form.draw(program.seed)).jaxpr))
        if wanted <= found and GONE.keys() <= bound:
            break
    missing = sorted(wanted - found)
    assert not missing
    assert not GONE.keys() - bound
    assert not found & (LEFT_OUT.keys() | GONE.keys()), "these occur after all"


def test_of_every_primitive_it_is_known_whether_it_rounds():
    """Else a platform's rounding counts as a wrong value."""
    assert ROUNDED.isdisjoint(EXACT) and OURS - (ROUNDED | EXACT) == set() == (ROUNDED | EXACT) - OURS


@pytest.mark.parametrize("name", [*LEFT_OUT, *GONE])
def test_what_is_left_out_is_there(name):
    assert name in OURS


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_is_tested_elsewhere(name):
    file = pathlib.Path(__file__).parents[2] / LEFT_OUT[name].rpartition(": ")[2]
    assert name in file.read_text()
