# The one entry for people and CI. Needs Python 3.11 or newer, GNU make 4 and Go 1.26 or newer; `make setup` brings the rest.
#
#   make demo [YES=1] [CLUSTER=current]   a task outlives its worker, on a real Kubernetes
#   make test [ARGS="-k name"]            every test; CLUSTER=current or kind for another cluster than the local one
#   make check                            format, lint, types, layers, generated files

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3.14 python3,$(shell command -v $(name))))
UV := $(shell command -v uv)
VENV := .venv
RUN := $(VENV)/bin/python
SOURCES := aura_operator hack tests benchmarks

.DEFAULT_GOAL := help
.PHONY: help setup tools check test cluster-up cluster-down crds demo demo-down bench lock
.PHONY: check-parts check-lint check-format check-mypy check-pyright check-layers check-dependencies check-crds

help:
	@sed -n 's/^#   //p' Makefile
	@echo "make setup tools cluster-up cluster-down crds demo-down bench lock"

# The stamp stands for "these exact requirements are installed".
setup: $(VENV)/.installed

$(VENV)/.installed: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, found: $$($(PYTHON) --version 2>&1). Say which: make setup PYTHON=/path/to/python3.12"; exit 1; }
ifdef UV
	@test -x $(RUN) || $(UV) venv --quiet --python $(PYTHON) $(VENV)
	$(UV) pip install --quiet --compile-bytecode --python $(RUN) --require-hashes -r requirements/dev.txt
	$(UV) pip install --quiet --python $(RUN) --no-deps --editable .
else
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --require-hashes -r requirements/dev.txt
	$(RUN) -m pip install --quiet --no-deps --editable .
endif
	@touch $@

tools: setup
	@$(RUN) -m hack.cluster tools
	@$(RUN) -m hack.cluster mcp-server

# The parts run side by side; each prints its output in one piece, and all of them are run even if one fails.
check: setup
	@$(MAKE) --no-print-directory --jobs 4 --output-sync=target --keep-going check-parts && echo "check: ok"

check-parts: check-pyright check-mypy check-lint check-format check-layers check-dependencies check-crds

check-lint:
	$(RUN) -m ruff check --quiet $(SOURCES)

check-format:
	$(RUN) -m ruff format --quiet --check $(SOURCES)

check-mypy:
	$(RUN) -m mypy --no-error-summary

check-pyright:
	$(RUN) -m pyright --warnings

check-layers:
	$(VENV)/bin/lint-imports --no-logo

# What is shipped declares what it imports, and imports what it declares; the rest may use what is for development.
check-dependencies:
	$(RUN) -m deptry --no-ansi aura_operator
	$(RUN) -m deptry --no-ansi --ignore DEP002,DEP004 hack tests benchmarks

check-crds:
	$(RUN) -m hack.crds --check

test: setup
	$(RUN) -m pytest $(ARGS)

cluster-up: setup
	@$(RUN) -m hack.cluster up

cluster-down: setup
	@$(RUN) -m hack.cluster down

crds: setup
	$(RUN) -m hack.crds

demo: setup
	@$(RUN) -m hack.demo $(if $(YES),--yes) $(if $(CLUSTER),--cluster $(CLUSTER))

demo-down: setup
	@$(RUN) -m hack.demo down

bench: setup
	@$(RUN) -m benchmarks $(ARGS)

# Resolves anew: the newest versions that pyproject.toml allows, for every platform, each with its hashes.
LOCK = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --upgrade \
  --custom-compile-command "make lock" pyproject.toml
lock:
	@command -v uv >/dev/null || { echo "make lock needs uv: run \`$(PYTHON) -m pip install uv\`"; exit 1; }
	$(LOCK) --output-file requirements/runtime.txt
	$(LOCK) --output-file requirements/dev.txt --extra dev
