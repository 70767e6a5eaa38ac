# make demo · make test set themselves up. make check is the gate.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?=

.PHONY: setup check fix test
setup: $(BIN)/.installed

$(BIN)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[train,gym,dev]'
	touch $@

check: setup
	$(BIN)/ruff format --check -q .
	$(BIN)/ruff check -q .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --no-cache
	$(BIN)/pytest -q -n 2 -m "not slow" tests/unit tests/contracts tests/golden tests/invariants

fix: setup
	$(BIN)/ruff check -q --fix .
	$(BIN)/ruff format -q .

test: setup
	$(BIN)/pytest -q -n 2 -m "not slow" $(if $(DATA),--data $(DATA))
