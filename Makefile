# Two commands do everything: `make serve` and `make test`. Both install what is missing first.
NPM := ONNXRUNTIME_NODE_INSTALL=skip npm

.PHONY: serve test install
serve: install
	@$(NPM) run --silent serve

install: node_modules/.installed

node_modules/.installed: package.json package-lock.json $(wildcard packages/*/package.json)
	$(NPM) ci --no-audit --no-fund
	@touch $@

test: install
	$(NPM) run lint
	$(NPM) run types
	$(NPM) run test:node
