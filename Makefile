# Everything runs from .venv, made from the locked dependencies. `make help` lists what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/run.stamp
DEV := $(VENV)/dev.stamp
PAGE := $(VENV)/page/page.stamp
CHECKED := src tests tools/release $(wildcard bench)
# The tests that belong to `check`.
HOUSE := $(addprefix tests/house/, test_shape.py test_imports.py test_language.py test_tracked_files.py)
# Worksteal keeps tests of a file together, so that each file's fixtures are made once.
DISK_PYTEST := $(BIN)/pytest -n $(shell tools/test-workers.sh) --dist worksteal
PYTEST := tools/in-memory.sh $(DISK_PYTEST)
# One more than there are cores: now and then a test waits for git.
QUICK_WORKERS = $(shell echo $$(($$(tools/test-workers.sh 2) + 1)))
# Tests start hundreds of daemons. Where Python may write no compiled files (PYTHONDONTWRITEBYTECODE) each would compile again.
COMPILE := $(BIN)/python -m compileall -q src
# One for the whole of a run, so that a test that is repeated is in its sample again.
LEGION_SEED ?= $(shell awk 'BEGIN { srand(); print int(1 + rand() * 999999) }')
export LEGION_SEED := $(LEGION_SEED)
# Else every process of every test compiles what it imports once more.
unexport PYTHONDONTWRITEBYTECODE
# As in the merge queue, failed tests are repeated once, alone. Those that pass then are flaky, and the output says so.
# Only a run that came to its end (1: tests failed) is repeated in part.
AGAIN := { [ $$? = 1 ] || exit 1; echo "Repeating the failed tests, one at a time. A test that passes now is flaky: fix it too."; \
	$(BIN)/pytest -v -n 0 --last-failed --last-failed-no-failures none; }

.DEFAULT_GOAL := help
.PHONY: help demo quick test attack agents durations check lint soak bench lock release clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUN) ## show the whole job on a scratch repository: no key, no network
	@tools/system-packages.sh bubblewrap
	@$(BIN)/legion demo

quick: $(DEV) ## the tests that need no daemon, no agent program and no Postgres
	@$(COMPILE)
	tools/in-memory.sh $(BIN)/pytest -n $(QUICK_WORKERS) --dist worksteal -q -m "quick and not soak and not slow" --hypothesis-profile=quick

test: lint ## check, and every test but the long loops (LEGION_SEED=N repeats a run)
	@tools/system-packages.sh bubblewrap postgresql chromium gh tmux git-lfs git-crypt
	@$(COMPILE)
	$(PYTEST) || $(AGAIN)

attack: $(DEV) ## only the tests that play an attacker, and a table: tried, held, got through
	@tools/system-packages.sh bubblewrap postgresql chromium git-lfs git-crypt
	@$(COMPILE)
	$(PYTEST) -q -m "attack and not soak"

agents: $(DEV) ## install all agent programs and play the conformance suite against each (2 GB; AGENTS="codex pi" limits it)
	@tools/system-packages.sh bubblewrap
	@$(COMPILE)
	PYTHONPATH=src:. $(BIN)/python tools/agents.py $(AGENTS)

durations: $(DEV) ## every test, and the slowest of them into tests/DURATIONS.txt
	@tools/system-packages.sh bubblewrap postgresql chromium gh tmux git-lfs git-crypt
	@$(COMPILE)
	tools/in-memory.sh $(BIN)/python tools/durations.py

check: lint ## format, lint, types, import layers, the shape of the code
	$(BIN)/pytest -q $(HOUSE)

# What `test` runs before its tests. Those of HOUSE are among these.
lint: $(DEV) $(PAGE)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/mypy -n auto $(CHECKED)
	$(BIN)/lint-imports --no-cache
	tools/page/check.sh

# Every company then works with the real program, also where a small one stands in for it else, and on the real disk.
soak: export LEGION_REAL_CLAUDE := 1
soak: $(DEV) ## every test, the long loops in full
	@tools/system-packages.sh bubblewrap postgresql chromium gh tmux git-lfs git-crypt
	@$(COMPILE)
	$(DISK_PYTEST) -m "" --timeout=3600

bench: $(DEV) ## measure, side by side with the plain way
	@tools/system-packages.sh bubblewrap
	@$(COMPILE)
	@$(BIN)/python -m bench

lock: $(DEV) ## choose new versions of the dependencies; nothing younger than a week
	@tools/lock.sh $(BIN)/uv

release: $(DEV) ## what is published, from the last commit into dist/, and each way to install it, tried without a network
	$(BIN)/python tools/release/build.py
	$(BIN)/python tools/release/trial.py

clean: ## take away what make made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Enough to run Legion.
$(RUN): requirements.lock pyproject.toml tools/make-venv.sh
	@tools/make-venv.sh "$(PYTHON)" $(VENV)
	@touch $@

# Enough to work on it.
$(DEV): $(RUN) requirements-dev.lock
	@echo "Installing the locked tools for tests and checks into $(VENV)"
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

# Prettier and TypeScript, for `lint` alone.
$(PAGE): $(DEV) tools/page/package-lock.json tools/page/install.sh
	@tools/page/install.sh
	@touch $@
