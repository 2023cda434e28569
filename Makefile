# Everything here makes its own environment in .venv and is safe to repeat.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-live test-docs test-site lint bench docs site fuzz wheel lock sbom audit clean

$(VENV)/.made: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	touch $@

# One stamp for each set of extras, so that a second run installs nothing.
$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(PIP) --editable '.[fit,sim,plots]'
	touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml
	$(PIP) --editable '.[fit,sim,plots,study,rivals,onnx,mdf,excel,frames,live,test]'
	touch $@

$(VENV)/.lint: $(VENV)/.test
	$(PIP) --editable '.[lint]'
	touch $@

demo: $(VENV)/.demo
	$(BIN)/evband demo --out demo/

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Real parts: mosquitto, an emulated dongle, Chromium; set up by the script, ten minutes at most.
test-live: $(VENV)/.test
	$(BIN)/python -m tools.live_parts
	$(BIN)/python -m pytest -m live tests/live

# Every shell and Python block of the tutorial and the guides, each page in a folder of its own.
test-docs: $(VENV)/.test
	$(BIN)/python -m tools.docs.blocks
	$(BIN)/python -m tools.docs.notebooks --check

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks.speed.bench

docs: $(VENV)/.test
	$(BIN)/python -m tools.docs.tables

$(VENV)/.docs: $(VENV)/.test
	$(PIP) --editable '.[docs]'
	touch $@

# The documentation in site/, built offline; a broken internal link fails.
site: $(VENV)/.docs
	$(BIN)/python -m mkdocs build --quiet

# The built site in Chromium: accessibility (axe-core), no sideways scrolling, nothing asked of others.
test-site: site
	$(BIN)/python -m tools.live_parts
	$(BIN)/python -m tools.docs.axe

# Attack every kind of input; the counts add up in benchmarks/results/fuzz.csv. Where atheris installs (Linux), a fifth as long again guided by coverage.
MINUTES ?= 5
fuzz: $(VENV)/.test
	$(BIN)/python -m benchmarks.checks.fuzz --minutes $(MINUTES)
	if $(PIP) atheris; then $(BIN)/python -m benchmarks.checks.fuzz_guided --minutes $$(($(MINUTES) / 5 + 1)); fi

# The same bytes whenever it is built: the time inside is that of the last commit.
wheel: $(VENV)/.test
	$(PIP) build hatchling
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 1767225600) $(BIN)/python -m build --no-isolation --wheel --outdir dist

# For users: the base package's dependencies with hashes; a list of components; known weaknesses (asks a server).
lock: $(VENV)/.test
	$(PIP) hatchling
	$(BIN)/python -m tools.lock

sbom: $(VENV)/.test
	$(PIP) cyclonedx-bom
	mkdir -p dist
	$(BIN)/cyclonedx-py requirements requirements.lock --output-reproducible --of JSON -o dist/evband.cdx.json

audit: $(VENV)/.test
	$(PIP) pip-audit
	$(BIN)/pip-audit --requirement requirements.lock --require-hashes --disable-pip

clean:
	rm -rf $(VENV) demo
