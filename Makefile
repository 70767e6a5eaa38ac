# `make help` lists what there is. Everything sets itself up: a virtual environment in .venv, packages pinned by
# constraints.txt, installed again only when pyproject.toml or constraints.txt changed.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP_INSTALL = $(BIN)/python -m pip install -q --no-compile --disable-pip-version-check -c constraints.txt \
	$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

# Folder with real benchmark problems and transcripts; tests that need it skip without it.
DATA ?=
# Isolation tier below which the tests fail, for example T2.
TIER ?=
# Test processes. Each gets one torch thread: with more, they wait for each other.
WORKERS ?= 2
# What `make demo` hands to `thincode demo`, for example --plan.
DEMO_ARGS ?=
# Where to look for torch besides PyPI, for example https://download.pytorch.org/whl/cpu.
TORCH_INDEX ?=

export OMP_NUM_THREADS ?= 1
# `=` in --data=…: pytest takes a lone existing path for the tests it shall run, and then knows none of our options.
PYTEST = $(BIN)/pytest -q -n $(WORKERS) --dist worksteal $(if $(DATA),--data="$(DATA)") $(if $(TIER),--require-tier=$(TIER))

.PHONY: help setup demo check lint test fix golden slow perf docs
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(BIN)/.all ## install thincode with every extra and the developer's tools into .venv

demo: $(BIN)/.train ## distill, SFT, RL, evaluation and a report on this machine's CPU, in minutes
	env -u OMP_NUM_THREADS $(BIN)/thincode demo $(DEMO_ARGS)

check: lint ## the gate before each commit: format, lint, types, import directions, quick tests
	$(PYTEST) -m "not slow" $(wildcard tests/unit tests/contracts tests/golden tests/invariants)

test: lint ## everything a change must pass, with coverage (DATA=folder of real benchmarks, TIER=T2)
	$(PYTEST) -m "not slow" --cov --cov-report=term:skip-covered

lint: $(BIN)/.all
	$(BIN)/ruff format --check -q .
	$(BIN)/ruff check -q .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --no-cache

fix: $(BIN)/.all ## format, and mend what the linter can mend
	$(BIN)/ruff check -q --fix .
	$(BIN)/ruff format -q .

golden: $(BIN)/.all ## write the golden files anew; the commit says why they moved
	$(BIN)/pytest -q --renew -k golden tests/golden tests/invariants

slow: $(BIN)/.all ## soak, long kill chains, whole matrices, ten times the drawn examples, every command of the docs
	$(PYTEST) -m "slow or hypothesis" --hypothesis-profile=whole

perf: $(BIN)/.all ## speed against peers, paired in one run
	$(BIN)/python perf/rollout.py
	$(BIN)/python perf/interpreter.py $(if $(DATA),--data "$(DATA)")
	$(BIN)/python perf/distill.py
	$(BIN)/python perf/grading.py

docs: $(BIN)/.all ## run every command that README and docs show
	$(BIN)/pytest -q -m "slow or not slow" tests/unit/house/test_docs.py

# One file per set says when it was installed. Every extra includes the one for training.
$(BIN)/.train: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e '.[train]'
	touch $@

$(BIN)/.all: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e '.[train,remote,gym,gp,jupyter,perf,dev]'
	touch $@ $(BIN)/.train

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
