# make play · make test · make demo. `make help` lists every target under its heading: a line `##@ heading` says to which
# the targets after it belong.

PYTHON ?= python3
VENV ?= .venv
VENV_STAMP := $(VENV)/.ready
PACKAGES := packages/weft packages/weft-remote native wasm
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
PY := $(VENV)/bin/python
PYTEST := $(PY) -m pytest
# On both cores. A worker that crashes ends the run: in place of one that crashes at the end, xdist starts another and waits for it without end.
PYTESTS := $(PYTEST) -n 2 --max-worker-restart=0

# Hundreds of tests start Python anew, hosts for example: let each find what the first has compiled of the sources.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup vulkan haproxy clean demo format lint types test test-quick test-python test-oracle test-random test-passes test-gpu test-hostile test-mutants wheels coverage accuracy test-random-coverage test-math

help:
	@awk 'BEGIN { count = split("set up,run,check,test,test at length,build,measure", headings, ",") } \
	  /^##@ / { heading = substr($$0, 5) } \
	  /^## / { end = index($$0, ": "); \
	           lines[heading] = lines[heading] sprintf("  %-22s%s\n", substr($$0, 4, end - 4), substr($$0, end + 2)) } \
	  END { for (k = 1; k <= count; k++) print (k > 1 ? "\n" : "") headings[k] "\n" lines[headings[k]] }' \
	  $(MAKEFILE_LIST) | cat -s

##@ set up
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
include mk/site.mk
include mk/ecosystem.mk

web: $(DIGITS)

##@ set up
## vulkan: find a Vulkan driver for wgpu-py, or install the software one
vulkan: $(VENV_STAMP)
	@sh tools/find-vulkan.sh $(PY)

## haproxy: find HAProxy, which some tests put before hosts, or install Debian's
haproxy:
	@sh tools/find-haproxy.sh

##@ test
## test: everything, as CI runs it: lint, test-python, test-web
test: lint test-python test-web

# Most tests compile small programs on XLA once. Without its optimiser, which these flags of the pinned jaxlib leave out, that takes about a quarter of the time. The
# tests in OPTIMISED run programs as users do, with the optimiser, and compare them with what real jax gave, or with the errors in docs/accuracy.md.
UNOPTIMISED_XLA := --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1
OPTIMISED := tests/acceptance tests/libraries tests/native tests/nn tests/random tests/core/test_conformance.py tests/ops/test_linalg_against_jax.py tests/meta/test_accuracy.py
RUN_TESTS = XLA_FLAGS="$(UNOPTIMISED_XLA)" $(PYTESTS) --dist worksteal $(1) tests $(addprefix --ignore=,$(OPTIMISED)) && \
  $(PYTESTS) --dist worksteal $(1) $(OPTIMISED)

## test-python: the Python tests, with every platform that the machine has
test-python: setup vulkan haproxy $(DIGITS) $(if $(shell command -v $(NODE)),$(NPM_STAMP))
	@$(call RUN_TESTS,)
	@ACCEPT_BACKEND=webgpu $(PYTESTS) -q tests/acceptance
	@ACCEPT_BACKEND=remote $(PYTESTS) -q tests/acceptance

## test-quick: what a change is likely to break, in under five minutes
test-quick: setup $(DIGITS)
	@export WEFT_TEST_PLATFORMS=reference,wasm WEFT_REQUIRE_PLATFORMS=wasm WEFT_RANDOM_PROGRAMS=40; $(call RUN_TESTS,-m "not slow")

##@ test at length
## test-oracle: comparisons with real jax, installed in an environment of its own
test-oracle: setup $(ORACLE)
	@WEFT_ORACLE_PYTHON=$(ORACLE) $(PYTEST) -m oracle tests

## test-gpu: what a GPU can check, in under ten minutes, from a plain checkout: the catalogue, linear algebra, random bits, programs, speed beside jax; writes bench/results/gpu.md
GPU_PYTHON ?= $(PYTHON)
test-gpu:
	@$(GPU_PYTHON) tools/gpu

## test-random: random programs against the reference interpreter (how many: RANDOM_WASM, RANDOM_XLA, RANDOM_WEBGPU, and RANDOM_THEMED of each that are about one kind of operation)
RANDOM_WASM ?= 30000
RANDOM_XLA ?= 10000
RANDOM_WEBGPU ?= 5000
RANDOM_THEMED ?= 2000
test-random: setup vulkan
	@PYTHONPATH=tests $(PY) -m programs --platform wasm --count $(RANDOM_WASM)
	@PYTHONPATH=tests $(PY) -m programs --platform cpu --count $(RANDOM_XLA)
	@PYTHONPATH=tests $(PY) -m programs --platform webgpu --count $(RANDOM_WEBGPU)
	@for p in wasm cpu webgpu; do PYTHONPATH=tests $(PY) -m programs --platform $$p --start 1000000 --count $(RANDOM_THEMED) || exit 1; done

## test-passes: what the interpreter makes of the loop IR before and after each pass of the compiler
test-passes: setup
	@WEFT_COMPARE_PASSES=all $(PYTESTS) -q tests/kernels/test_passes.py
	@WEFT_COMPARE_PASSES=all ACCEPT_BACKEND=wasm $(PYTEST) -q tests/acceptance
	@WEFT_COMPARE_PASSES=all PYTHONPATH=tests $(PY) -m programs --platform wasm --count 2000

## test-hostile: 100,000 changed programs, files, loops and artifacts each, and 1,000,000 frames: refused in clear words, or right (over an hour); and 200 processes that are killed
test-hostile: setup $(NPM_STAMP)
	@WEFT_FAULT_ROUNDS=200 $(PYTEST) -q tests/remote/test_faults.py
	@WEFT_HOSTILE_FRAMES=1000000 WEFT_HOSTILE_LIVE_FRAMES=100000 $(PYTEST) -q tests/remote/test_protocol.py tests/remote/test_fuzz.py
	@WEFT_HOSTILE_FRAMES=1000000 npm test --silent -w @weft/runtime
	@WEFT_HOSTILE_PROGRAMS=100000 WEFT_HOSTILE_FILES=100000 $(PYTESTS) -q tests/remote/test_mutations.py
	@WEFT_HOSTILE_LOOPS=100000 WEFT_HOSTILE_ARTIFACTS=100000 $(PYTESTS) -q tests/kernels/test_loop_mutations.py tests/wasm/test_artifact_mutations.py tools/web/test_readers.py

## test-mutants: which of 552 faults and this project's own past ones do the tests catch? Writes docs/mutants.md (two hours for all; those in unchanged code are known)
test-mutants: setup web browser $(DIGITS)
	@XLA_FLAGS="$(UNOPTIMISED_XLA)" $(PY) tools/mutants reach
	@XLA_FLAGS="$(UNOPTIMISED_XLA)" $(PY) tools/mutants run
	@XLA_FLAGS="$(UNOPTIMISED_XLA)" $(PY) tools/mutants history
	@$(PY) tools/mutants report

##@ measure
## coverage: which names of jax there are, and what tests them; writes docs/coverage.md
coverage: setup
	@$(PY) tools/coverage.py

## accuracy: the largest error of each function on every backend and in real jax; writes docs/accuracy.md (20 minutes)
accuracy: setup vulkan $(ORACLE)
	@WEFT_ORACLE_PYTHON=$(ORACLE) $(PY) tools/accuracy.py

## test-random-coverage: what random programs alone reach of the compiler; writes docs/random-coverage.md (10 minutes)
test-random-coverage: setup vulkan
	@$(PY) tools/random_coverage

## test-math: the elementary functions of Wasm at a million points each against mpmath
test-math: setup
	@$(PY) tests/kernels/math_accuracy.py

##@ run
## demo: train the digits on every backend that this machine has, and print one table
demo: setup vulkan $(DIGITS) $(if $(shell command -v $(NODE)),web)
	@$(PY) examples/digits/demo.py

PYTHON_SOURCES := packages native wasm web e2e tests bench examples tools docs/internals
PRETTIER := node_modules/.bin/prettier "**/*.{ts,js,mjs}" --log-level warn
LAYOUT := { echo "The files named above are not laid out as the formatters have them: run \`make format\`." >&2; exit 1; }

##@ check
## format: lay out all Python, TypeScript and JavaScript
format: setup $(NPM_STAMP)
	@$(PY) -m ruff format $(PYTHON_SOURCES)
	@$(PRETTIER) --write

## lint: is everything laid out so? Then ruff's rules, code that nothing uses, and mypy
lint: setup $(NPM_STAMP)
	@$(PY) -m ruff format --quiet --check $(PYTHON_SOURCES) || $(LAYOUT)
	@$(PRETTIER) --check || $(LAYOUT)
	@$(PY) -m ruff check $(PYTHON_SOURCES)
	@$(PY) tools/dead_code.py
	@$(PY) -m mypy

## types: mypy alone, over all packages, as pyproject.toml says
types: setup
	@$(PY) -m mypy

##@ build
## wheels: the four distributions, in build/dist
wheels: setup
	@rm -rf build/dist && mkdir -p build/dist
	@for p in $(PACKAGES); do $(PY) -m build --wheel --no-isolation --outdir build/dist $$p >build/dist/log 2>&1 || { cat build/dist/log; exit 1; }; done
	@rm build/dist/log && ls -l build/dist

##@ set up
## clean: what builds leave behind, but not the environments
clean:
	@rm -rf build
