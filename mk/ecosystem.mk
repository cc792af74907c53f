# Published libraries on weft, in an environment of their own that has no jax.

ECO := build/ecosystem
ECO_PIP := $(ECO)/bin/python -m pip --disable-pip-version-check

$(ECO)/.ready: examples/ecosystem/requirements.txt examples/ecosystem/constraints.txt $(addsuffix /pyproject.toml,$(PACKAGES))
	@test -x $(ECO)/bin/python || $(PYTHON) -m venv $(ECO)
	@$(ECO_PIP) install -q -c examples/ecosystem/constraints.txt hatchling editables jaxlib ml_dtypes numpy opt_einsum scipy wasmtime websockets
	@$(ECO_PIP) install -q --no-build-isolation --no-deps $(addprefix -e ,$(PACKAGES))
	@$(ECO)/bin/python -m weft.as_jax install
	@$(ECO_PIP) install -q -c examples/ecosystem/constraints.txt -r examples/ecosystem/requirements.txt
	@touch $@

##@ test at length
## test-ecosystem: examples of optax, flax, equinox, numpyro and others on weft, and the own tests of optax and flax; writes docs/ecosystem.md
test-ecosystem: $(ECO)/.ready
	@$(ECO)/bin/python examples/ecosystem/run.py

.PHONY: test-ecosystem
