PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
DOCS_INSTALLED := .venv/.docs-installed
PYTHONS ?= 3.11 3.12 3.13
# They touch every dependency, and take two to three minutes of one core.
QUICK := tests/test_package.py tests/test_start_up.py tests/analysis/test_statistics.py \
	tests/cli/test_plot.py tests/cli/test_train.py tests/envs/test_tasks.py \
	tests/experiments/test_on_ray.py tests/networks tests/training/test_export.py \
	tests/training/test_golden.py tests/training/test_logging.py
RESULTS := $(patsubst results/%/grid.toml,%,$(wildcard results/*/grid.toml))

.PHONY: help install test test-oldest test-newest $(PYTHONS:%=test-newest-%) dist lint format docs docs-tables docs-check demo faults soak audit evidence credit bench bench-options bench-discrete bench-truth bench-scaling bench-wrappers bench-sweep bench-checkpoint bench-predict bench-coverage results $(RESULTS:%=results-%) clean


help:  ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $(INSTALLED)

$(DOCS_INSTALLED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	@touch $(DOCS_INSTALLED)

install: $(INSTALLED)  ## create .venv with the tested versions of everything

test: lint  ## everything a change must pass: lint, types, tests
	$(BIN)/python -m pytest --numprocesses 2

# What an old version says of those after it is left aside.
test-oldest: $(INSTALLED)  ## the quick tests with the lowest versions that are allowed
	$(BIN)/uv venv --quiet --clear --python $(firstword $(PYTHONS)) .venv-oldest
	$(BIN)/uv pip install --quiet --python .venv-oldest --resolution lowest-direct --editable ".[dev]"
	.venv-oldest/bin/python -m pytest --numprocesses 2 -W ignore::DeprecationWarning $(QUICK)

test-newest: $(PYTHONS:%=test-newest-%)  ## the same with the newest, on every Python that we claim

$(PYTHONS:%=test-newest-%): test-newest-%: $(INSTALLED)
	$(BIN)/uv venv --quiet --clear --python $* .venv-$*
	$(BIN)/uv pip install --quiet --python .venv-$* --upgrade --editable ".[dev]"
	.venv-$*/bin/python -m pytest --numprocesses 2 $(QUICK)

dist: $(INSTALLED)  ## build wheel and source distribution, look into them, and try the wheel elsewhere
	rm -rf dist
	$(BIN)/uv build --quiet
	$(BIN)/uvx --quiet twine check --strict dist/*
	$(BIN)/python tools/check_dist.py

lint: $(INSTALLED)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED)  ## let ruff format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DOCS_INSTALLED)  ## build the documentation into site/, for a browser without a network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # (with --quiet it would not be)

docs-tables: $(INSTALLED)  ## fill in the tables, numbers and pictures in README and docs from results/
	$(BIN)/python tools/docs_tables.py

docs-check: docs  ## build it, and look for anything that it would load from elsewhere
	$(BIN)/python tools/check_site.py site

demo: $(INSTALLED)  ## learn to run from late rewards, beside plain SAC: verdict, report, pictures
	$(BIN)/belated demo --out demo

bench: $(INSTALLED)  ## steps per second beside Stable-Baselines3 (needs the bench extra)
	$(BIN)/python benchmarks/throughput.py --json results/throughput.json

bench-options: $(INSTALLED)  ## the same with one H for both critics or for each, and without an averaged policy
	$(BIN)/python benchmarks/throughput.py --json results/throughput_options.json --methods \
		hc-singleton "hc-singleton, shared" crossq-hc-singleton \
		"crossq-hc-singleton, separate" "crossq-hc-singleton, last policy"

bench-discrete: $(INSTALLED)  ## the same for discrete actions, beside its DQN
	$(BIN)/python benchmarks/throughput.py --discrete --json results/throughput_discrete.json
	$(BIN)/python benchmarks/throughput.py --discrete --units 64 --json results/throughput_discrete_64.json

bench-truth: $(INSTALLED)  ## agents with discrete actions beside the exact optimum (about half an hour of one core)
	$(BIN)/python benchmarks/tabular_truth.py --out results/tabular_truth.json

faults: $(INSTALLED)  ## kill runs more than a hundred times, load thousands of spoiled files
	BELATED_KILLS=25 BELATED_MUTATIONS=2000 $(BIN)/python -m pytest --numprocesses 2 tests/faults

bench-scaling: $(INSTALLED)  ## how the cost of an update grows; runs side by side
	$(BIN)/python benchmarks/scaling.py --json results/scaling.json

bench-sweep: $(INSTALLED)  ## what a sweep adds to the time of its runs (about ten minutes)
	$(BIN)/python benchmarks/sweep_overhead.py --json results/sweep_overhead.json

audit: $(INSTALLED)  ## licences and known vulnerabilities of what we depend on, a bill of materials
	$(BIN)/python tools/audit.py --json results/sbom.json

soak: $(INSTALLED)  ## learn for an hour with a checkpoint every minute, and watch memory and files
	$(BIN)/python benchmarks/soak.py --json results/soak.json

bench-predict: $(INSTALLED)  ## microseconds for the action of one observation
	$(BIN)/python benchmarks/predict.py --json results/predict.json

bench-checkpoint: $(INSTALLED)  ## what a checkpoint costs, by the size of the replay
	$(BIN)/python benchmarks/checkpoint_cost.py --json results/checkpoint_cost.json

bench-coverage: $(INSTALLED)  ## how often the intervals of docs/statistics.md cover the truth
	$(BIN)/python benchmarks/coverage.py --json results/coverage.json

$(RESULTS:%=results-%): results-%: $(INSTALLED)
	PYTHONPATH=results/$* $(BIN)/belated sweep results/$*/grid.toml --out runs/$*

results:  ## list the comparisons of results/; make results-NAME does the runs of one again
	@for name in $(RESULTS); do echo "  make results-$$name"; done

evidence: $(INSTALLED)  ## do the declared runs that results/ lacks: FOLDERS="a b"; tools/gather.py --help says more
	$(BIN)/python tools/gather.py $(FOLDERS)

credit: $(INSTALLED)  ## how well the credit of finished runs tells who earned what: RUNS="runs/a runs/b"
	$(BIN)/python tools/credit.py $(RUNS)

bench-wrappers: $(INSTALLED)  ## what the wrappers cost per environment step
	$(BIN)/python benchmarks/wrapper_overhead.py

clean:  ## remove virtual environments, caches and what was built
	rm -rf .venv .venv-* dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
