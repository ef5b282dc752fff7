# Two commands matter: `make demo` and `make test`. Both make what they need, in .venv, and reuse it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= auto
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: help demo frontier reproduce audit test test-all floors lint types imports docs bench bench-peers clean

help:  ## List the commands.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(VENV)/.demo  ## Run a small grid on RiverSwim, and say where the figure and the report are.
	$(BIN)/private-rl-gym sweep riverswim --store demo/runs --out demo
	@echo "Your own problem: $(BIN)/private-rl-gym plan --help; a table of yours: plan --table, then learn."

frontier: $(VENV)/.demo  ## Compare private agents at the same true epsilon, on eight problems; some minutes, and resumable.
	$(BIN)/private-rl-gym sweep frontier --store frontier/runs --out frontier
	@echo "The table: frontier/table.csv"

reproduce: $(VENV)/.demo  ## Run the built-in grids, one for each paper; first figure 1 of DP-UCBVI.
	for grid in dp-ucbvi pucb rlsvi sdp-pe linopt; do \
	  $(BIN)/private-rl-gym sweep $$grid --store reproduce/runs --out reproduce/$$grid || exit 1; done

audit: $(VENV)/.demo  ## Audit every boundary, mechanism and calibration at four epsilons; fail if chance does not explain the alarms.
	$(BIN)/private-rl-gym audit --all --runs 2000 --out audits

# One long task beside the tests, so that no core waits for it.
test: lint imports  ## Run what belongs before every commit: lint, types, contracts, quick tests.
	@$(MAKE) --no-print-directory types & beside=$$!; \
	$(PYTEST) -m "not slow"; tests=$$?; wait $$beside && exit $$tests

test-all: $(VENV)/.dev  ## Run what takes longer: learners, audits, attacks, kills, Dask, the docs' code, the site.
	@$(MAKE) --no-print-directory docs & beside=$$!; \
	$(PYTEST) -m slow --durations=30 --ignore=tests/test_site.py; tests=$$?; wait $$beside && \
	$(BIN)/python -m pytest -m slow tests/test_site.py && exit $$tests

floors: .venv-floor/.made  ## Run the quick tests with the oldest versions of dependencies that are promised; Python 3.10 to 3.12.
	.venv-floor/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

.venv-floor/.made: pyproject.toml constraints-floor.txt
	$(PYTHON) -m venv .venv-floor
	.venv-floor/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-floor.txt \
	  -e '.[dask,figures,rendering,secure,train]' hypothesis latex2mathml opendp pytest pytest-xdist
	@touch $@

lint: $(VENV)/.dev  ## Check style and formatting.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## Check types.
	$(BIN)/mypy

imports: $(VENV)/.dev  ## Check that dependencies point one way.
	$(BIN)/lint-imports

docs: $(VENV)/.dev  ## Build the site into docs/_build/html, warnings being errors.
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The site: docs/_build/html/index.html"

bench: $(VENV)/.dev  ## Measure speed, as ratios within one run.
	$(BIN)/python benchmarks

bench-peers: $(VENV)/.dev .venv-rlberry/bin/python  ## Measure learners against a peer, in a virtual environment of its own.
	$(BIN)/python benchmarks/learners.py

.venv-rlberry/bin/python: | $(BIN)/python
	$(PYTHON) -m venv .venv-rlberry
	.venv-rlberry/bin/python -m pip install --quiet --disable-pip-version-check -c benchmarks/peers.txt rlberry-scool

clean:  ## Remove what the other commands made.
	rm -rf $(VENV) .venv-floor .venv-rlberry docs/_build docs/environments docs/generated demo frontier reproduce audits .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find private_rl_gym tests docs examples benchmarks -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON) here: try make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "Python 3.10 or newer is needed: try make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# constraints.txt pins a tested set; without it torch may bring several GB of CUDA libraries.
$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing into $(VENV); the first time takes a minute or two."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[figures,rendering]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing into $(VENV); the first time takes a minute or two."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.demo
