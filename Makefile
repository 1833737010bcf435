# Two commands do everything on a fresh machine with Python 3.11 or newer:
#   make demo    sets up its own environment and runs the demonstration
#   make test    sets up and runs every check and test that the machine can, and says what it left out and why; make services
#                gets what is missing (about 15 minutes on two cores; PHDSTREAM_THOROUGH=1 tries many more cases)
# While working: make quick (all checks, and the tests that are neither slow nor statistical: under a minute).
# And to see how fast it is: make bench (a few minutes), make bench-run (a file of 100 million rows, 2.2 GB for a while).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: docs demo test quick services bench bench-run fuzz setup lint types layers lock clean

demo: setup
	$(BIN)/phdstream demo

test: setup lint types layers
	$(BIN)/python -m pytest -n auto --dist loadgroup -rs

quick: setup lint types layers
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not statistical" --ignore=tests/benchmarks

# Gets what tests run against and the machine lacks: Debian's packages if we are root, the Kafka broker by Maven.
services:
	deploy/services/fetch

METHOD ?= PHDStream

bench: setup
	$(BIN)/python -m benchmarks --method $(METHOD)

bench-run: setup
	$(BIN)/python -m benchmarks --only-run --rows 100000000 --json benchmarks/results-run.json

# Damaged files, odd arguments, odd queries: a few minutes (python -m fuzz --help for more).
fuzz: setup
	$(BIN)/python -m fuzz --cases 100000 --seconds 600

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "phdstream needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# The documentation site, in build/docs/html: notebooks and gallery are run, links inside are checked, warnings are errors.
docs: setup
	$(BIN)/sphinx-build -b html -W --keep-going -q docs build/docs/html
	@echo "Look at build/docs/html/index.html; addresses outside are in build/docs/external-links.txt"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports --no-logo

# Writes requirements.lock anew from pyproject.toml, for all supported Pythons, with hashes and without hosts.
lock:
	uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --upgrade -o requirements.lock

clean:
	rm -rf $(VENV) phdstream-demo dist build docs/api docs/gallery
