# Everything a person types. `make demo` and `make test` need nothing but Python 3.11 (or newer) and make.

PYTHON ?= $(firstword $(foreach v,3.11 3.12 3.13,$(shell command -v python$(v))) python3)
VENV := .venv
BIN := $(VENV)/bin
SET_UP := $(VENV)/.set-up
EXTRAS := triton 'nvidia-cuda-runtime-cu12==12.3.*' 'nvidia-cuda-nvcc-cu12==12.3.*' 'nvidia-cuda-cccl-cu12==12.3.*'

.PHONY: demo test soak extras torch bench lint format docs lock clean

demo: $(SET_UP)  ## six eviction policies and Belady race on an oversubscribed GPU
	@mkdir -p out
	$(BIN)/tidegate compare blackscholes --bytes 1GiB --oversubscribe 20%,50%,100% --plot out/demo.png

test: $(SET_UP)  ## all the tests
	$(BIN)/python -m pytest -n auto --dist worksteal

KILLS ?= 20000
soak: $(SET_UP)  ## live memory at full length: writers for every policy, a crash at every step, 20,000 killed pagers
	TIDEGATE_SOAK=1 $(BIN)/python -m pytest tests/live/test_reliable.py tests/live/test_middle.py tests/live/test_failures.py tests/live/test_crashes.py
	$(BIN)/python tests/live/soak.py --kills $(KILLS)

extras: $(SET_UP)  ## a gigabyte of packages that some tests use and are skipped without
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-extras.lock

torch: $(SET_UP)  ## PyTorch for CPUs, to record programs; its wheels differ between indexes, so they are not in a lock
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0

bench: $(SET_UP)  ## the figures of docs/performance.md
	$(BIN)/python -m benchmarks

lint: $(SET_UP)  ## ruff, mypy, and the direction of imports
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(SET_UP)  ## put the layout right
	$(BIN)/ruff check --fix src tests benchmarks examples
	$(BIN)/ruff format src tests benchmarks examples

docs: $(SET_UP)  ## the reference of every public name, from its docstrings, in out/reference
	$(BIN)/pdoc --no-show-source --output-directory out/reference tidegate '!tidegate.cli'

lock: $(SET_UP)  ## choose exact versions anew
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --extra dev --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --no-annotate --output-file requirements.lock pyproject.toml
	printf '%s\n' $(EXTRAS) | $(BIN)/uv pip compile --quiet --universal --no-deps --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --no-annotate --output-file requirements-extras.lock -

$(SET_UP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tidegate needs Python 3.11 or newer; set PYTHON=..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
