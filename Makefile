# make play · make test · make demo. `make help` lists every target.

PYTHON ?= python3
VENV ?= .venv
VENV_STAMP := $(VENV)/.ready
PACKAGES := packages/weft packages/weft-remote native wasm
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
PY := $(VENV)/bin/python
PYTEST := $(PY) -m pytest
# On both cores. A worker that crashes ends the run: in place of one that crashes at the end, xdist starts another and waits for it without end.
PYTESTS := $(PYTEST) -n 2 --max-worker-restart=0

.DEFAULT_GOAL := help
.PHONY: help setup test test-quick test-python demo format lint types wheels bench clean coverage test-random test-random-coverage test-passes test-hostile test-math test-mutants accuracy

## help: this list
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST) | sort

## setup: the Python environment in .venv with everything installed (nothing happens when nothing has changed)
setup: $(VENV_STAMP)

$(VENV_STAMP): constraints.txt requirements-dev.txt $(addsuffix /pyproject.toml,$(PACKAGES))
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -q -c constraints.txt -r requirements-dev.txt
	@$(PIP) install -q --no-build-isolation --no-deps $(addprefix -e ,$(PACKAGES))
	@touch $@

# Real jax in an environment of its own; set ORACLE to use another.
ORACLE ?= build/oracle/bin/python

build/oracle/bin/python:
	@$(PYTHON) -m venv build/oracle && $@ -m pip install -q "jax==0.10.2" "jaxlib==0.10.2"

DIGITS := examples/digits/digits.bin

$(DIGITS): examples/digits/data.py | $(VENV_STAMP)
	@$(PY) examples/digits/data.py

include mk/web.mk
include mk/ecosystem.mk

web: $(DIGITS)

## vulkan: find a Vulkan driver for wgpu-py, or install the software one
vulkan: $(VENV_STAMP)
	@sh tools/find-vulkan.sh $(PY)

## test: everything: lint, Python, the TypeScript runtime, the browser
test: lint test-python test-web

# Most tests compile small programs on XLA once. Without its optimiser, which these flags of the pinned jaxlib leave out, that takes about a quarter of the time. The
# tests in OPTIMISED run programs as users do, with the optimiser, and compare them with what real jax gave, or with the errors in docs/accuracy.md.
UNOPTIMISED_XLA := --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1
OPTIMISED := tests/acceptance tests/libraries tests/native tests/nn tests/random tests/core/test_conformance.py tests/ops/test_linalg_against_jax.py tests/meta/test_accuracy.py
RUN_TESTS = XLA_FLAGS="$(UNOPTIMISED_XLA)" $(PYTESTS) --dist loadgroup $(1) tests $(addprefix --ignore=,$(OPTIMISED)) && \
  $(PYTESTS) --dist loadgroup $(1) $(OPTIMISED)

## test-python: the Python tests
test-python: setup vulkan $(DIGITS)
	@$(call RUN_TESTS,)
	@ACCEPT_BACKEND=webgpu $(PYTESTS) -q tests/acceptance

## test-quick: what a change is likely to break, in under five minutes
test-quick: setup $(DIGITS)
	@export WEFT_TEST_PLATFORMS=reference,wasm WEFT_REQUIRE_PLATFORMS=wasm WEFT_RANDOM_PROGRAMS=40; $(call RUN_TESTS,-m "not slow")

## test-oracle: comparisons with real jax, installed in an environment of its own
test-oracle: setup $(ORACLE)
	@WEFT_ORACLE_PYTHON=$(ORACLE) $(PYTEST) -m oracle tests

## test-random: random programs against the reference interpreter; how many on each backend: RANDOM_WASM, RANDOM_XLA, RANDOM_WEBGPU
RANDOM_WASM ?= 30000
RANDOM_XLA ?= 10000
RANDOM_WEBGPU ?= 5000
test-random: setup vulkan
	@PYTHONPATH=tests $(PY) -m programs --platform wasm --count $(RANDOM_WASM)
	@PYTHONPATH=tests $(PY) -m programs --platform cpu --count $(RANDOM_XLA)
	@PYTHONPATH=tests $(PY) -m programs --platform webgpu --count $(RANDOM_WEBGPU)

## test-random-coverage: what random programs alone reach of the compiler for Wasm and WebGPU: docs/random-coverage.md (10 minutes)
test-random-coverage: setup vulkan
	@$(PY) tools/random_coverage

## test-passes: the loop IR before and after each pass of the compiler in the interpreter: the catalogue with derivatives and batches, acceptance programs, random ones
test-passes: setup
	@WEFT_COMPARE_PASSES=all $(PYTESTS) -q tests/kernels/test_passes.py
	@WEFT_COMPARE_PASSES=all ACCEPT_BACKEND=wasm $(PYTEST) -q tests/acceptance
	@WEFT_COMPARE_PASSES=all PYTHONPATH=tests $(PY) -m programs --platform wasm --count 2000

## test-hostile: 100,000 programs, and as many files, frames and arrays, programs of the loop IR and artifacts, changed in their structure: refused in clear words, or right (over an hour)
test-hostile: setup $(NPM_STAMP)
	@WEFT_HOSTILE_PROGRAMS=100000 WEFT_HOSTILE_FILES=100000 $(PYTESTS) -q tests/remote/test_mutations.py
	@WEFT_HOSTILE_LOOPS=100000 WEFT_HOSTILE_ARTIFACTS=100000 $(PYTESTS) -q tests/kernels/test_loop_mutations.py tests/wasm/test_artifact_mutations.py tools/web/test_readers.py

## test-math: the elementary functions of Wasm at a million points each against mpmath
test-math: setup
	@$(PY) tests/kernels/math_accuracy.py

## test-mutants: 552 faults put into the code one by one, and this project's own past ones: which do the tests catch? (two hours)
test-mutants: setup web browser $(DIGITS)
	@XLA_FLAGS="$(UNOPTIMISED_XLA)" $(PY) tools/mutants reach
	@XLA_FLAGS="$(UNOPTIMISED_XLA)" $(PY) tools/mutants run
	@XLA_FLAGS="$(UNOPTIMISED_XLA)" $(PY) tools/mutants history
	@$(PY) tools/mutants report

## coverage: write docs/coverage.md: which names of jax there are, and what tests them
coverage: setup
	@$(PY) tools/coverage.py

## accuracy: write docs/accuracy.md: the largest errors of all functions on every backend, and of real jax (20 minutes; goes on where it was cut off)
accuracy: setup vulkan $(ORACLE)
	@WEFT_ORACLE_PYTHON=$(ORACLE) $(PY) tools/accuracy.py

## demo: train the digits on every backend that this machine has, and print one table
demo: setup vulkan $(DIGITS) $(if $(shell command -v $(NODE)),web)
	@$(PY) examples/digits/demo.py

PYTHON_SOURCES := packages native wasm web e2e tests bench examples tools docs/internals

## lint: how code is laid out, ruff's rules over all Python, code that nothing uses, and mypy over the packages
lint: setup
	@$(PY) -m ruff format --check $(PYTHON_SOURCES) || { echo "The files above are not laid out as the formatter has them: run \`make format\`." >&2; exit 1; }
	@$(PY) -m ruff check $(PYTHON_SOURCES)
	@$(PY) tools/dead_code.py
	@$(PY) -m mypy

## format: lay out all code as `make lint` wants it
format: setup
	@$(PY) -m ruff format $(PYTHON_SOURCES)

## types: mypy over all packages, as pyproject.toml says
types: setup
	@$(PY) -m mypy

## wheels: the four distributions, in build/dist
wheels: setup
	@rm -rf build/dist && mkdir -p build/dist
	@for p in $(PACKAGES); do $(PY) -m build --wheel --no-isolation --outdir build/dist $$p >build/dist/log 2>&1 || { cat build/dist/log; exit 1; }; done
	@rm build/dist/log && ls -l build/dist

## clean: what builds leave behind, but not the environments
clean:
	@rm -rf build
