# `make serve` and `make test` work in a fresh clone: each installs what it needs first.

# The install script of the ONNX runtime would download GPU libraries; its package already contains the CPU build.
# npm's warnings about the machine's Node do not matter: the project installs Node 24 and uses that.
NPM := ONNXRUNTIME_NODE_INSTALL=skip npm --loglevel=error
# The project's Node 24 where npm has installed one (Linux), otherwise the machine's.
NODE := PATH="$(CURDIR)/node_modules/.bin:$$PATH" node
# Debian's own Python, because Debian's PyTorch is built for it.
PYTHON ?= /usr/bin/python3
# Python compiles what it imports anyway: compiling everything at install time takes longer.
PIP_INSTALL := install --quiet --disable-pip-version-check --no-compile

.PHONY: help serve test acceptance install test-deps check docs try-docs package release
.DEFAULT_GOAL := help

help:
	@echo 'make serve       run the service on http://127.0.0.1:8080; the first start prints a link to its page'
	@echo 'make test        everything a change must pass (installs missing Debian packages)'
	@echo 'make acceptance  the slow checks: benches, fault injection, recovery, the container image'
	@echo 'make check       the quick part of the tests: style and types'
	@echo 'make docs        the documentation site, into dist-docs/; open dist-docs/index.html'
	@echo 'make install     only the npm packages and the page'
	@echo 'make package     what is published, into dist-packages/: npm packages, Python wheel and sdist'
	@echo 'make release VERSION=x.y.z  set the version everywhere; prints what to do next'

# Not through npm, so that signals to make reach the server.
serve: install
	@PATH="$(CURDIR)/node_modules/.bin:$$PATH" exec node packages/cli/bin/undertone.js serve

install: node_modules/.installed packages/playground/dist/index.html

node_modules/.installed: package.json package-lock.json $(wildcard packages/*/package.json)
	$(NPM) ci
	@touch $@

# The web page. npm builds it at install time; this rebuilds it when its sources have changed later.
PAGE := $(shell find packages/playground packages/sdk/src packages/contract/src examples/voices docs/*.md -type f \
	-not -path '*/dist*' -not -path '*/test/*')
packages/playground/dist/index.html: $(PAGE) | node_modules/.installed
	@$(NODE) packages/playground/scripts/build.ts
	@touch $@

check: install
	@$(NPM) run --silent check

package: install clients/python/.venv/.installed
	@$(NODE) scripts/package.ts

# Installs nothing, so that it changes only what it says.
release:
	@$(NODE) scripts/release.ts "$(VERSION)"

test-deps:
	@PYTHON=$(PYTHON) scripts/test-deps.sh

.venv/.installed: training/requirements-test.txt packages/testing/requirements.txt | test-deps
	$(PYTHON) -m venv --system-site-packages .venv
	.venv/bin/pip $(PIP_INSTALL) $(addprefix --requirement ,$^)
	@touch $@

clients/python/.venv/.installed: clients/python/pyproject.toml | test-deps
	$(PYTHON) -m venv clients/python/.venv
	clients/python/.venv/bin/pip $(PIP_INSTALL) --editable 'clients/python[dev]'
	@touch $@

packages/server/.venv/.installed: packages/server/test/support/generated/requirements.txt | test-deps
	$(PYTHON) -m venv packages/server/.venv
	packages/server/.venv/bin/pip $(PIP_INSTALL) --requirement $<
	@touch $@

packages/site/.venv/.installed: packages/site/requirements.txt
	$(PYTHON) -m venv packages/site/.venv
	packages/site/.venv/bin/pip $(PIP_INSTALL) --requirement $<
	@touch $@

# A link or an anchor that leads nowhere fails it. Not with --quiet, which hides warnings from --strict.
docs: node_modules/.installed packages/site/.venv/.installed
	@NO_MKDOCS_2_WARNING=1 packages/site/.venv/bin/mkdocs build --strict --clean --config-file packages/site/mkdocs.yml
	@echo 'Open $(CURDIR)/dist-docs/index.html'

# In a real browser, from disk.
try-docs: docs | test-deps
	@node_modules/.bin/node packages/site/scripts/try-site.ts

# What the tests need. Mostly downloads, so they run in parallel.
.PHONY: test-ready
test-ready: install .venv/.installed clients/python/.venv/.installed packages/server/.venv/.installed

test:
	@$(MAKE) --no-print-directory --jobs=4 --output-sync=line test-ready
	@scripts/run-tests.sh

acceptance: install test-deps .venv/.installed clients/python/.venv/.installed
	@scripts/acceptance.sh
