# `make demo` and `make test` are all one needs: each builds .venv by itself, with pip and constraints.txt.

PYTHON ?= python3.11
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test torture lint docs
.DEFAULT_GOAL := demo

demo: .venv/base.stamp
	$(BIN)/regard demo

test: lint
	$(BIN)/python tests/groups.py

# The long form of the tests of faults and of resuming, hours and not minutes: the counts that the table of promises in docs/faults.md speaks of.
torture: .venv/dev.stamp
	REGARD_TORTURE=1 $(BIN)/python tests/groups.py faults laws

lint: .venv/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright

# docs/config.md, from the docstrings of the configs, and the pages of the lessons, from their cells.
docs: .venv/base.stamp
	$(BIN)/python -c "from regard.config.docs import document; from regard.run import Run; print(document(Run), end='')" > docs/config.md
	$(BIN)/regard lessons --markdown --to docs/lessons

# Debian splits ensurepip from Python; where it is missing, the pip of the system puts one into the new environment.
.venv/bin/python:
	$(PYTHON) -m venv .venv || ($(PYTHON) -m venv --without-pip .venv && $(PYTHON) -m pip --python .venv/bin/python install pip) \
	  || (rm -rf .venv; echo "make: no pip for $(PYTHON); as root: apt install python3.11-venv" >&2; exit 1)

.venv/base.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable .
	touch $@

.venv/dev.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable ".[dev,figures]"
	touch .venv/base.stamp $@
