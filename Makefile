# Everything here makes its own environment in .venv and is safe to repeat.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-live lint bench docs clean

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

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks.speed.bench

docs: $(VENV)/.test
	$(BIN)/python -m tools.docs.tables

clean:
	rm -rf $(VENV) demo
