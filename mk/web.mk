# The browser side: npm packages, wheels for the page, the site, its tests. Included by the Makefile.
#
# VENV_STAMP, if set, is the file that says the Python environment is ready.

NODE ?= node
NPM ?= npm
VENV ?= .venv
PORT ?= 8000
HOST_PORT ?= 8765
HOST_COMMAND ?= $(VENV)/bin/weft-host --port {port} --token={token}

NPM_STAMP := node_modules/.package-lock.json
WHEELS_STAMP := build/wheels/.stamp
WHEEL_PROJECTS := packages/weft packages/weft-remote wasm
WHEEL_SOURCES := $(foreach dir,$(WHEEL_PROJECTS),$(wildcard $(dir)/pyproject.toml $(dir)/README.md) \
  $(shell find $(dir)/src -name '*.py' -o -name '*.js' -o -name '*.d.ts' -o -name '*.html' 2>/dev/null))

$(NPM_STAMP): package.json package-lock.json $(wildcard */package.json wasm/runtime/package.json)
	PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 $(NPM) ci --no-audit --no-fund --loglevel=error
	@touch $@

# What runs exported programs, and the page that shows them; kept in the repository, so that wheels are built without npm.
EXPORTED := $(addprefix wasm/src/weft_wasm/page/,weft.js weft-gpu.js weft-page.js)
$(EXPORTED) &: wasm/runtime/package.json $(wildcard wasm/runtime/src/*.ts wasm/runtime/src/demo/*.ts) | $(NPM_STAMP)
	@$(NPM) run --silent build:exported -w @weft/runtime
	@$(NPM) run --silent build:gpu -w @weft/runtime
	@$(NPM) run --silent build:page -w @weft/runtime
	@touch $(EXPORTED)

# The wheels that a page loads.
$(WHEELS_STAMP): $(WHEEL_SOURCES) $(EXPORTED) | $(VENV_STAMP)
	@rm -rf build/wheels && mkdir -p build/wheels
	@for project in $(WHEEL_PROJECTS); do \
	  $(VENV)/bin/python -m build --wheel --no-isolation --outdir build/wheels $$project >build/wheels/build.log 2>&1 \
	    || { cat build/wheels/build.log; exit 1; }; \
	done
	@rm -f build/wheels/build.log && touch $@

# Pure wheels that the site serves: they are the same for every Python, but resolved for the page's.
PACKAGES_STAMP := build/packages/.stamp
$(PACKAGES_STAMP): web/packages.txt | $(VENV_STAMP)
	@rm -rf build/packages
	@$(VENV)/bin/python -m pip --disable-pip-version-check download -q --no-deps --require-hashes \
	  --python-version 3.14 --only-binary=:all: -d build/packages -r $<
	@touch $@

.PHONY: web play test-web test-runtime test-e2e test-firefox bench-page browser firefox

##@ build
## web: build the playground into build/site (nothing happens when nothing has changed)
web: $(NPM_STAMP) $(WHEELS_STAMP) $(PACKAGES_STAMP)
	@$(NODE) tools/web/build_site.mjs --wheels build/wheels --out build/site --python $(VENV)/bin/python

##@ run
## play: serve the playground and an accelerator host on loopback (PORT=, HOST_PORT=)
play: web
	@exec $(NODE) tools/play.mjs --site build/site --port $(PORT) --host-port $(HOST_PORT) --host-command "$(HOST_COMMAND)"

##@ test
## test-runtime: types of all TypeScript; under Node the tests of the runtime, of the page's parts and of the build tools
test-runtime: $(NPM_STAMP) | $(VENV_STAMP)
	@$(NPM) run --silent typecheck
	@$(NPM) test --silent -w @weft/runtime
	@$(NPM) test --silent -w @weft/cell
	@$(NPM) test --silent -w @weft/web
	@$(NODE) --test tools/test/
	@$(VENV)/bin/python -m pytest -q tools/web

##@ set up
## browser: find a Chromium, or install one
browser: $(NPM_STAMP)
	@$(NODE) tools/find-browser.mjs

##@ test
## test-e2e: the page in Chromium
test-e2e: web browser
	@PYTHON=$(abspath $(VENV))/bin/python $(NPM) test --silent -w @weft/e2e

## test-firefox: what matters most of the page in Firefox; skipped, with a line that says so, where it is not installed
test-firefox: web
	@PYTHON=$(abspath $(VENV))/bin/python $(NPM) run --silent test:firefox -w @weft/e2e

## test-web: all three: everything about the browser side
test-web: test-runtime test-e2e test-firefox

##@ measure
## bench-page: what a visitor waits for, beside what is allowed
bench-page: web browser
	@PYTHON=$(abspath $(VENV))/bin/python $(NODE) bench/browser/page.mjs

##@ set up
## firefox: find a Firefox, or install Debian's
firefox:
	@$(NODE) tools/find-firefox.mjs --install
