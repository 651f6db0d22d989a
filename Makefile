# `make run` is all it takes on a machine with Python 3.11 or newer.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := $(VENV)-peers
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"
PYTEST_ARGS ?= -n auto
ARGS ?=
DATA ?= ../shared/data

.PHONY: help setup screenshots run test test-browser-full lint audit bench bench-peers growth docs evaluate reliability storm lock
.DEFAULT_GOAL := help

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

setup: $(READY) ## make the virtual environment VENV (default .venv) from requirements.lock

$(READY): requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON). Install Python 3.11 or newer, or name it: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than Python 3.11. Name a newer one: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv module. Install it (Debian and Ubuntu: apt install python3-venv) and try again."; exit 1; }
	@echo "Installing the packages of requirements.lock into $(VENV)."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

run: setup ## start everything on http://127.0.0.1:8000 (PORT=…, ARGS=--demo)
	@$(BIN)/python manage.py up $(ARGS)

test: setup ## run the whole test suite
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: setup ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy .

audit: setup ## ask PyPI whether a package of requirements.lock has a known vulnerability
	@$(BIN)/python -m scripts.audit

bench: setup ## measure speed and add it to evaluation/reports/performance.md (half an hour; BENCH_FULL=1 adds a million lessons)
	@$(BIN)/python -m evaluation.performance $(ARGS)

growth: setup ## load, a soak of half an hour, memory, starts, many accounts, sizes: evaluation/reports/growth.md (ARGS=parts)
	@$(BIN)/python -m evaluation.growth $(ARGS)

bench-peers: $(PEERS)/.ready ## measure chroma and LangGraph's store beside this one and add it to the same report (ten minutes)
	@$(PEERS)/bin/python -m evaluation.performance peers $(ARGS)

$(PEERS)/.ready: requirements.lock evaluation/performance/peers.lock
	@echo "Installing the packages of requirements.lock and peers.lock into $(PEERS)."
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(PEERS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r evaluation/performance/peers.lock
	@touch $@

evaluate: setup ## measure trust, retrieval and the loop anew and write evaluation/reports (about an hour; DATA=the labelled data)
	@$(BIN)/python manage.py evaluate trust --committed
	@$(BIN)/python manage.py evaluate retrieval --committed --lessons $(DATA)/lessons.jsonl --queries $(DATA)/queries.jsonl \
		--off-domain $(DATA)/off_domain.jsonl --intents $(DATA)/intents.jsonl
	@$(BIN)/python manage.py evaluate loop --committed

test-browser-full: setup ## the browser tests in every look: light and dark, wide and 360 px
	@LOOKS=all $(BIN)/python -m pytest tests/browser

reliability: setup ## kill workers and stores under load, count what is lost, and write evaluation/reports/reliability.md (most of an hour; KILLS=n)
	@$(BIN)/python -m evaluation.reliability

storm: setup ## ask for lessons a million times amid changes of their states, and hold each answer against them (hours; RETRIEVALS=n)
	@RETRIEVALS=$${RETRIEVALS:-1000000} $(BIN)/python -m pytest tests/system/test_storm.py

docs: setup ## build the documents as a site, site/index.html; a link that leads nowhere is an error
	@$(BIN)/mkdocs build --strict

screenshots: setup ## pictures of every review page, wide and narrow, light and dark, in docs/screenshots (needs chromium)
	@$(BIN)/python -m scripts.screenshots $(ARGS)

lock: setup ## write the lock files anew: of everything, of what an image needs, and of the peers of the benchmark
	@$(COMPILE) pyproject.toml --all-extras --output-file requirements.lock
	@$(COMPILE) pyproject.toml --extra otel --constraint requirements.lock --output-file deploy/requirements.lock
	@$(COMPILE) evaluation/performance/peers.in --constraint requirements.lock --output-file evaluation/performance/peers.lock
