# Everything a person types. `make demo` and `make test` need nothing but Python 3.11 (or newer) and make.

PYTHON ?= $(firstword $(foreach v,3.11 3.12 3.13,$(shell command -v python$(v))) python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
SET_UP := $(VENV)/.set-up
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
# tidegate[cluster] and a server of object storage, with what they need
CLUSTER := distributed dask dask-jobqueue cloudpickle fsspec importlib-metadata lazy-importer zipp locket msgpack partd psutil pyyaml tblib \
	toolz tornado zict obstore duckdb moto flask flask-cors werkzeug blinker itsdangerous requests responses certifi \
	charset-normalizer idna xmltodict cryptography cffi pycparser py-partiql-parser
# tidegate[studio], with what it and its tests need
STUDIO := starlette uvicorn anyio h11 idna httpx httpcore certifi playwright greenlet
# libraries whose tables and matrices are tested over live memory, with what they need; polars, DuckDB and PyTorch are elsewhere
TABLES := pyarrow pandas scikit-learn scipy joblib narwhals threadpoolctl safetensors
# CUDA's own compiler, whose wheels have it from 13 on
NVCC := 'nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-nvvm==13.0.*' 'nvidia-cuda-runtime==13.0.*'
EXTRAS := triton $(NVCC) 'nvidia-cuda-runtime-cu12==12.3.*' 'nvidia-cuda-nvcc-cu12==12.3.*' 'nvidia-cuda-cccl-cu12==12.3.*' $(CLUSTER) $(STUDIO) $(TABLES)

# Packages are installed uncompiled, so Python must keep what it compiles: commands start in half the time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test quick rest test-all soak extras torch bench coverage lint format docs figures dist release lock clean

demo: $(INSTALLED)  ## six eviction policies and Belady race on an oversubscribed GPU
	@mkdir -p out
	$(BIN)/tidegate compare blackscholes --bytes 1GiB --oversubscribe 20%,50%,100% --plot out/demo.png

PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
FAST := not slow and not extra

test: $(SET_UP)  ## the tests that tell most: closed forms, oracles, every verb, live memory in short; no extras
	$(PYTEST) -m "$(FAST)"

# rooms and files of tests that differ from the last commit, or whose source does
CHANGED = $(shell { git diff --name-only HEAD; git ls-files --others --exclude-standard; } | \
	sed -nE 's,^(src/tidegate|tests)/(\w+)/.*,tests/\2,p; s,^src/tidegate/(\w+\.py)$$,tests/test_\1,p; s,^tests/test_\w+\.py$$,&,p' | sort -u)

quick: $(SET_UP)  ## while editing: the fast tests of the rooms that differ from the last commit, and of the simulator
	$(PYTEST) -m "$(FAST)" $(sort tests/simulation $(wildcard $(CHANGED)))

rest: $(SET_UP)  ## what `make test` left out: long tests, and those that need `make extras torch`
	$(PYTEST) -m "not ($(FAST))"

test-all: $(SET_UP)  ## all the tests; those whose packages are missing are skipped, and say so
	$(PYTEST)

KILLS ?= 20000
soak: $(SET_UP)  ## live memory at full length: writers for every policy, a crash at every step, 20,000 killed pagers
	TIDEGATE_SOAK=1 $(BIN)/python -m pytest tests/live/test_reliable.py tests/live/test_middle.py tests/live/test_failures.py tests/live/test_crashes.py
	$(BIN)/python tests/live/soak.py --kills $(KILLS)

extras: $(SET_UP)  ## a gigabyte of packages that some tests use and are skipped without
	$(PIP) --require-hashes --no-deps -r requirements-extras.lock

torch: $(SET_UP)  ## PyTorch for CPUs, to record programs; its wheels differ between indexes, so they are not in a lock
	$(PIP) torch==2.13.0

bench: $(SET_UP)  ## the figures of docs/performance.md
	$(BIN)/python -m benchmarks

lint: $(SET_UP)  ## ruff, mypy, and the direction of imports
	$(BIN)/ruff check src tests benchmarks examples scripts
	$(BIN)/ruff format --check src tests benchmarks examples scripts
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(SET_UP)  ## put the layout right
	$(BIN)/ruff check --fix src tests benchmarks examples scripts
	$(BIN)/ruff format src tests benchmarks examples scripts

coverage: $(SET_UP)  ## all the tests, and which lines they run: a table, and pages in out/coverage
	$(PYTEST) --cov --cov-report=term --cov-report=html:out/coverage

docs: $(SET_UP)  ## the documentation as pages with search, and the reference of every public name, in out/site
	$(PIP) --require-hashes --no-deps -r requirements-docs.lock
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html -d out/doctrees docs out/site
	$(BIN)/pdoc --no-show-source --output-directory out/site/names tidegate '!tidegate.cli'

figures: $(SET_UP)  ## the figures of the documentation
	$(BIN)/python scripts/figures.py

dist: $(SET_UP)  ## wheel and source archive, in dist
	$(BIN)/python -m hatchling build

release: $(SET_UP)  ## make a release: VERSION=0.2.0
	$(BIN)/python scripts/release.py $(VERSION)

# the packages of an extra, a line each
extra = $(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$(1)"], sep="\n")'

lock: $(SET_UP)  ## choose exact versions anew
	$(PIP) uv
	$(LOCK) --output-file requirements.lock pyproject.toml
	$(call extra,dev) | $(LOCK) --constraint requirements.lock --output-file requirements-dev.lock -
	$(call extra,docs) | $(LOCK) --constraint requirements.lock --constraint requirements-dev.lock --output-file requirements-docs.lock -
	printf '%s\n' $(EXTRAS) | $(LOCK) --no-deps --output-file requirements-extras.lock -

$(INSTALLED): requirements.lock pyproject.toml  # what the package needs
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tidegate needs Python 3.11 or newer; set PYTHON=..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile --require-hashes --no-deps -r requirements.lock
	$(PIP) --no-deps --editable .
	@touch $@

$(SET_UP): $(INSTALLED) requirements-dev.lock  # and what its tests need
	$(PIP) --no-compile --require-hashes --no-deps -r requirements-dev.lock
	@touch $@

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
