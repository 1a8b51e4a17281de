PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help install test lint format demo bench bench-scaling bench-wrappers results-halfcheetah results-bfloat16 results-on-policy results-point-reach clean

help:  ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $(INSTALLED)

install: $(INSTALLED)  ## create .venv with the tested versions of everything

test: lint  ## everything a change must pass: lint, types, tests
	$(BIN)/python -m pytest --numprocesses 2

lint: $(INSTALLED)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED)  ## let ruff format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: $(INSTALLED)  ## learn Point Reach with and without the paper's Q-function, and draw it
	$(BIN)/belated demo --out demo

bench: $(INSTALLED)  ## steps per second beside Stable-Baselines3 (needs the bench extra)
	$(BIN)/python benchmarks/throughput.py --json results/throughput.json

bench-scaling: $(INSTALLED)  ## how the cost of an update grows; runs side by side
	$(BIN)/python benchmarks/scaling.py --json results/scaling.json

results-halfcheetah: $(INSTALLED)  ## the HalfCheetah comparison behind the README's table (two hours and a quarter)
	results/halfcheetah-sum-n20/run.sh

results-bfloat16: $(INSTALLED)  ## some of them with bfloat16 products (an hour and a quarter)
	results/halfcheetah-sum-n20-bfloat16/run.sh

results-on-policy: $(INSTALLED)  ## PPO, RUDDER and LIRPG on HalfCheetah (a quarter of an hour)
	results/halfcheetah-sum-n20-on-policy/run.sh

results-point-reach: $(INSTALLED)  ## Point Reach, many seeds, two learning rates (about 40 minutes)
	results/point-reach/run.sh
	results/point-reach-80k/run.sh

bench-wrappers: $(INSTALLED)  ## what the wrappers cost per environment step
	$(BIN)/python benchmarks/wrapper_overhead.py

clean:  ## remove the virtual environment and caches
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
