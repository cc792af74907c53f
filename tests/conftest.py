"""Strict in tests: every jaxpr that is made is verified. All tests find what they share (`frozen.py`) beside this
file.
"""

import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent))

os.environ.setdefault("WEFT_VERIFY_JAXPRS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Programs over several devices run on virtual ones, which must be asked for before the first client is made.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import gc  # noqa: E402
import zlib  # noqa: E402

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import weft  # noqa: E402
from platforms import (  # noqa: E402, F401
    chosen,
    first_device,
    lack,
    pytest_configure,
    pytest_terminal_summary,
    pytest_unconfigure,
)


def _mappings() -> int:
    try:
        with open("/proc/self/maps") as file:
            return sum(1 for _ in file)
    except OSError:
        return 0


class _Heap:
    """What Python has allocated, kept small: the more objects there are, the longer is each walk of the garbage
    collector, for which many tests ask.
    """

    FEW = 500_000  # blocks of memory, as Python counts them: tens of megabytes

    def __init__(self):
        self.blocks = self.tests = 0

    def grown(self, blocks: int) -> bool:
        return sys.getallocatedblocks() > self.blocks + blocks

    def tidy(self, settled: bool) -> None:
        """Lets go of compiled programs, and of what they hold. settled: what is there now stays, and the garbage
        collector need not walk through it again.
        """
        weft.clear_caches()
        gc.collect()
        if settled:
            gc.freeze()
        self.blocks = sys.getallocatedblocks()


_heap = _Heap()


def pytest_collection():
    if "PYTEST_XDIST_WORKER" in os.environ:  # which collects; who hands out the tests does not
        gc.disable()


def pytest_collection_finish():
    """The modules and parameters of 40,000 tests stay until the end."""
    gc.enable()
    _heap.tidy(settled=True)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    _heap.tests += 1
    if _heap.tests % 32 == 0 and _heap.grown(4 * _Heap.FEW):  # in a long module
        _heap.tidy(settled=False)


@pytest.fixture(autouse=True, scope="module")
def _room_for_programs():
    """Lets go of compiled programs now and then: each of XLA's takes mappings of memory, of which Linux gives a
    process 65,530, and XLA aborts without.
    """
    yield
    if _mappings() > 30_000 or _heap.grown(_Heap.FEW):
        _heap.tidy(settled=True)


@pytest.fixture
def only_own_memory():
    """For tests that compare what a device holds: what others left is collected before, and nothing meanwhile."""
    _heap.tidy(settled=False)
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _passes_compared():
    """With WEFT_COMPARE_PASSES=all whatever the Wasm backend compiles is run in the interpreter before and after
    each pass (`passes.py`).
    """
    if os.environ.get("WEFT_COMPARE_PASSES") != "all" or lack("wasm") is not None or "wasm" not in chosen():
        yield
        return
    import passes

    with passes.watching(first_device("wasm").backend) as watcher:
        yield
    print(
        f"\n{len(watcher.compared)} programs verified after each pass, {sum(n > 0 for n in watcher.compared)} compared",
        file=sys.stderr,
    )


@pytest.fixture(autouse=True)
def _same_numbers_in_any_order(request):
    """A test draws the same numbers from its module's generator whichever tests ran before it, in this process or
    another.
    """
    for generator in vars(request.module).values() if request.module else ():
        if type(generator) is np.random.Generator:
            generator.bit_generator.state = np.random.default_rng(
                zlib.crc32(request.node.name.encode())
            ).bit_generator.state
