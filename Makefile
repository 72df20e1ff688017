# `make demo` and `make test` work on a fresh clone: the first one makes .venv with everything in it.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
PROMPT ?= Write a short story about a river that learns to count.

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types soak bench clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile | expand -t 10

setup: $(READY) ## make .venv, which the others do by themselves

$(READY): pyproject.toml scripts/install.py
	$(PYTHON) scripts/install.py .venv
	@touch $@

demo: $(READY) ## stream an answer of the embedded model, with n-gram speculation
	@$(BIN)/triton-spec generate --speculative ngram --max-new-tokens 128 "$(PROMPT)"

test: $(READY) ## all tests but the long ones
	OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -n auto

lint: $(READY) ## ruff: rules and format
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

types: $(READY) ## mypy, strict, on dispatch and triton_cpu
	$(BIN)/python -m mypy

soak: $(READY) ## the long tests
	OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -m slow

bench: $(READY) ## speed against transformers and the memory bandwidth, and of the CPU backend against PyTorch
	$(BIN)/triton-spec bench
	$(BIN)/python -m benchmarks backend

clean: ## remove .venv and what tools left
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
