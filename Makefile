# Two commands do everything on a bare machine: make demo, make test. Each sets the checkout up first.

PYTHON ?= python3
VENV   := .venv/bin
PYTEST := $(VENV)/python -m pytest
# One lane of tests that start services, one of everything else (tests/support/lanes.py); each process
# has servers of its own, of some 4 GiB at its most. A third on two cores makes a run no shorter.
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup demo test nightly test-crash check fast-tables fast-others code lint site format mutants supply-chain bench bench-splice ci lock clean

help: ## What there is to make (this list)
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  Needs Python 3.11+, Java 17+ and make; the rest is fetched into .venv and a cache."
	@echo "  PYTHON=python3.12 picks an interpreter, ARGS=\"-k fold\" goes on to pytest, demo or bench."
	@echo "  WORKERS=4 runs four test files at a time, two of them with services: four cores and more."
	@echo "  WORKERS=0 runs one test after the other in one process, which shows what a test prints."

setup: ## Make .venv and fetch the jars; done by every command below, quick the second time
	@$(PYTHON) tools/bootstrap.py

demo: setup ## A broker, a shop's changes, the service, and its tables compared with the truth
	@$(VENV)/lakesplice demo $(ARGS)

test: setup ## Every test but the nightly ones; what continuous integration runs, with choices of its own
	@$(PYTEST) --numprocesses $(WORKERS) --dist loadfile $(ARGS)

# A life of test_bootstrap.py's kills took ten minutes beside other work, and Kubernetes' API server may be
# built for an hour; so a test hangs once it lasts for an hour and a half, not a quarter of an hour.
nightly: setup ## Everything, with what takes minutes by its nature, at length (hours)
	@$(PYTEST) --numprocesses $(WORKERS) --dist loadfile --nightly --hypothesis-profile nightly --kills 50 --bucket-calls 0 --splice-examples 100 -o faulthandler_timeout=5400 $(ARGS)

test-crash: setup ## The crash tests with fifty kills of the service (long)
	@$(PYTEST) tests/crash --kills 50 $(ARGS)

# A thousand test modules are compiled once, not by each process: that takes seven seconds.
check test: export PYTHONDONTWRITEBYTECODE =

# The halves of the tests are runs of their own: the workers of one run would collect all modules each.
# Lint runs beside them: mypy takes as long as half of one, where it has no cache.
check: setup ## Format, lint, types, import rules and the fast tests: all but those marked slow
	@$(MAKE) --no-print-directory --jobs 3 $(TOGETHER) fast-tables fast-others code

# Each of the three shows what it has to say when it ends, where make can do that.
TOGETHER := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
TABLES   := tests/property tests/unit/table
OTHERS   := tests/unit --ignore tests/unit/table
# What a C library prints is not caught, which takes a sixth of the time of a short test. A half in
# which ARGS chooses no test (5) is no failure.
FAST     := $(PYTEST) -q --numprocesses 0 --capture sys -p no:anyio -m "not slow" --hypothesis-profile fast

fast-tables:
	@$(FAST) $(TABLES) $(ARGS) || test $$? -eq 5

fast-others:
	@$(FAST) $(OTHERS) $(ARGS) || test $$? -eq 5

code: setup
	@$(VENV)/ruff format --check --output-format concise .
	@$(VENV)/ruff check --output-format concise .
	@$(VENV)/mypy
	@$(VENV)/lint-imports --no-logo --no-cache

lint: code ## What check does without tests, and the documentation with every link
	@$(VENV)/python tools/documentation.py

site: setup ## The documentation as a site in build/site/html, every link checked
	@$(VENV)/python tools/documentation.py

format: setup ## Let ruff format the code and fix what it can
	@$(VENV)/ruff format .
	@$(VENV)/ruff check --fix .

mutants: setup ## 200 faults put into the code, one by one, and which no test notices (hours)
	@PYTHONPATH=tools $(VENV)/python -m mutants $(ARGS)

supply-chain: setup ## The bill of materials, licences, and known weaknesses of what the service runs on
	@$(VENV)/python tools/supply_chain.py
	@$(VENV)/python tools/runtime_lock.py requirements.lock > build/supply-chain/runtime.lock
	@$(VENV)/uvx pip-audit@2.10.1 --strict --require-hashes --disable-pip --requirement build/supply-chain/runtime.lock

bench: setup ## The figures, each beside its peers and floor in the same run
	@$(VENV)/python -m benchmarks $(ARGS)

bench-splice: setup ## The splice beside Delta, Iceberg, Hudi and others (hours), its table and plot
	@$(VENV)/python -m benchmarks.splice $(ARGS)
	@$(VENV)/python -m benchmarks.splice.report

ci: ## What continuous integration runs
	@bash .ci/run

lock: setup ## Resolve the dependencies again into requirements.lock
	@$(VENV)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-header --upgrade --quiet --output-file requirements.lock

clean: ## Remove .venv and every cache of this checkout; the jars stay
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build
