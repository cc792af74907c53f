# The documentation, one static site with the playground in it. Included by the Makefile.

SITE_READY := $(VENV)/.site-ready

$(SITE_READY): requirements-site.txt constraints.txt | $(VENV_STAMP)
	@$(PIP) install -q -c constraints.txt -r requirements-site.txt
	@touch $@

.PHONY: site

##@ build
## site: the documentation beside the playground, in build/site/docs
site: web $(SITE_READY)
	@$(PY) tools/site/prepare.py build/docs/source
	@PYTHONPATH=tools/site $(PY) -m sphinx -q -W --keep-going -d build/docs/trees build/docs/source build/site/docs

# Its tests build a part of the documentation.
test-e2e: $(SITE_READY)
