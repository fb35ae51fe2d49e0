# One environment, two builds. Interpreted tests run with `src` on the path, compiled tests with
# the wheel unpacked into build/compiled; everything else is the same.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
# What working on zenlake takes is installed, and what running it from this folder takes.
READY   := $(VENV)/ready
RUNS    := $(VENV)/ready-to-run

# Nothing is installed yet: pip brings what compiling takes, and all the rest comes meanwhile.
ISOLATED := $(if $(wildcard $(READY) $(RUNS)),,--isolated)

INTERPRETED := ZENLAKE_EXPECT=interpreted PYTHONPATH=src
COMPILED    := ZENLAKE_EXPECT=compiled PYTHONPATH=build/compiled
# Four workers keep both cores of a small machine busy, since many tests wait for other programs;
# ARGS="-n 0 -k name" is for a close look.
PYTEST      := $(BIN)/python -m pytest -q -n 4 --dist=loadfile -p tools.times \
	--durations=20 --durations-min=15
# Runs a verb and records how long it took; `make times` writes the table.
STAGE       := $(PYTHON) tools/times.py stage
DAY         := not nightly
# Without bytecode each worker rewrites the asserts of all test files: 15 s of CPU.
unexport PYTHONDONTWRITEBYTECODE
# In a fresh clone one process does that, for all workers.
build/bytecode-of-tests: $(READY)
	@mkdir -p build
	@PYTHONPATH=src $(BIN)/python -m pytest -q --collect-only > $@ 2>&1 || { cat $@; rm $@; exit 1; }
# For what searches for hours.
ENDLESS     := --timeout=0 -o faulthandler_timeout=0
FUZZ_SECONDS ?= 300
# To nodes of each role, to the broker of 2018 and through WebSockets half an hour in all; to HTTP,
# which is slower, three quarters of an hour more.
FUZZ_MESSAGES ?= 10000000

.DEFAULT_GOAL := help
.PHONY: help up style format types layers fresh test nightly times interpreted compiled interpreted-stage compiled-stage \
	newest matrix cover wire fuzz \
	bench bench-full storm docs wheels month soak clean

help: ## this page
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

up: ## router, journal and lake on this machine, until you stop them
	@PYTHON="$(PYTHON)" exec ./zenlake up $(ARGS)

style: $(READY) ## formatting, lint, spelling, workflows of GitHub and subjects of commits
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/codespell
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --quiet --offline --no-progress .github
	$(BIN)/python tools/commits.py

format: $(READY) ## rewrite what `style` can mend by itself
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

types: $(READY) ## mypy --strict, on everything
	$(BIN)/mypy

layers: $(READY) ## who may import whom
	PYTHONPATH=src $(BIN)/lint-imports --no-logo --no-cache

fresh: $(READY) ## no generated file is stale
	$(BIN)/python tools/generated.py --check

# Each stage is recorded (tools/times.py). The checks run beside the C compiler, and the interpreted
# suite beside the compiled one: each has moments in which it only waits.
test: ## all that protects behaviour, on both builds
	@$(STAGE) environment $(MAKE) --no-print-directory $(READY)
	@$(STAGE) "compile and checks" $(MAKE) --no-print-directory --jobs=2 --output-sync=target \
		build/compiled style types layers fresh build/bytecode-of-tests
	@$(MAKE) --no-print-directory --jobs=2 compiled-stage interpreted-stage
	@$(PYTHON) tools/times.py summary

interpreted-stage:
	@$(STAGE) --held interpreted $(MAKE) --no-print-directory interpreted ARGS="-n 2 $(ARGS)"

compiled-stage:
	@$(STAGE) compiled $(MAKE) --no-print-directory compiled

# What searches or endures: the tests marked `nightly`, the newest Python, a month of `up` with every
# part killed again and again. ZENLAKE_MINUTES is the length of that month.
nightly: ## `make test`, and all that searches or endures: two hours
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory compiled DAY=nightly
	@$(MAKE) --no-print-directory newest
	@$(MAKE) --no-print-directory month

interpreted: $(READY) build/compiled ## the tests of rooms that are compiled, on their sources
	$(INTERPRETED) $(PYTEST) -m "$(DAY) and not interop and not slow and not spark and not once" $(ARGS)

compiled: $(READY) build/compiled ## the suite on the compiled wheel, with interop
	@$(COMPILED) $(BIN)/python -m tools.spark_classes
	$(COMPILED) $(PYTEST) -m "$(DAY)" $(ARGS)

times: ## write the table of CONTRIBUTING.md from the last `make test`
	$(PYTHON) tools/times.py table

newest: ## what a new Python breaks first, on the newest one of this machine
	$(PYTHON) tools/matrix.py --newest tests/aio tests/api tests/docs/test_prose.py

matrix: ## the whole suite on every Python of this machine from 3.11 on, both builds
	$(PYTHON) tools/matrix.py $(ARGS)

cover: $(READY) ## branches that no test takes
	rm -f .coverage .coverage.*
	$(INTERPRETED) $(BIN)/python -m coverage run -m pytest -q -n 2 \
		-m "not interop and not slow and not spark" $(ARGS)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

wire: $(READY) ## write the generated files anew
	$(BIN)/python tools/generated.py

fuzz: $(READY) build/compiled ## search hostile bytes for longer, and both builds for a difference
	$(BIN)/python tools/fuzz.py --seconds $(FUZZ_SECONDS)
	$(COMPILED) $(BIN)/python -m tools.fuzz_sessions --messages $(FUZZ_MESSAGES)
	HYPOTHESIS_PROFILE=night $(COMPILED) $(PYTEST) $(ENDLESS) tests/hostile $(ARGS)

bench: $(READY) build/compiled ## both builds beside each other, in build/bench.json
	$(BIN)/python -m bench.micro --json build/bench.json $(ARGS)

# Wants some 30 GB of disk and half an hour.
bench-full: $(READY) build/compiled ## everything beside Eclipse and Spark, and a lake of 50 million rows
	$(BIN)/python -m bench.macro --json build/macro.json
	PYTHONPATH=build/compiled $(BIN)/python -m bench.lake all --sizes 1000000,10000000,50000000 \
		--json build/lake.json

storm: $(READY) build/compiled ## one bad neighbour against a router, ours beside Eclipse
	PYTHONPATH=build/compiled $(BIN)/python -m bench.storm --json build/storm.json $(ARGS)

docs: wire ## generate the reference pages, build the site into build/site, run the examples
	$(BIN)/python -m mkdocs build --quiet
	$(INTERPRETED) $(PYTEST) tests/docs $(ARGS)

wheels: $(READY) ## both wheels and the source archive, in dist/
	rm -rf dist
	ZENLAKE_BUILD=compiled $(BIN)/python -m hatchling build -t wheel
	ZENLAKE_BUILD=pure $(BIN)/python -m hatchling build -t wheel -t sdist

month: $(READY) build/compiled ## a month of `up` in ZENLAKE_MINUTES
	ZENLAKE_MINUTES=$(or $(ZENLAKE_MINUTES),60) $(COMPILED) $(BIN)/python -m pytest -q -n 0 -s $(ENDLESS) \
		tests/supervise/test_month.py

soak: month ## a month of `up`, then every property of the suite searched for hours
	HYPOTHESIS_PROFILE=night ZENLAKE_ROUNDS=10 $(COMPILED) $(PYTEST) $(ENDLESS) $(ARGS)

clean: ## forget everything but the sources
	rm -rf $(VENV) build dist htmlcov .coverage* .mypy_cache .pytest_cache .ruff_cache \
		.import_linter_cache .hypothesis

# The script compares fingerprints, and does nothing when the tree is good.
.PHONY: build/compiled
build/compiled: $(if $(ISOLATED),$(BIN)/python,$(firstword $(wildcard $(READY)) $(RUNS)))
	@$(BIN)/python tools/compiled_tree.py $(ISOLATED)

# tools/environment.py compares requirements: other edits to pyproject.toml install nothing.
$(BIN)/python:
	@$(PYTHON) tools/environment.py empty

$(RUNS): pyproject.toml tools/needs.py | $(BIN)/python
	@$(PYTHON) tools/environment.py run

$(READY): pyproject.toml tools/needs.py | $(BIN)/python
	@$(PYTHON) tools/environment.py dev
