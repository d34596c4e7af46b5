# make demo | test | test-full [SHARD=3/8] | check | codegen | mutate | fuzz [N=1000] | fuzz-load [N=1000] | fuzz-text [N=1000] | playground | docs | vsix | clean
# Needs python3 >= 3.11 with venv, g++ and make. Everything else is installed into $(VENV) by the first target that needs it.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
STAMP := $(VENV)/.ait-setup
TORCH := $(shell sed -n 's/^torch==//p' constraints.txt)

SHARD ?=
N ?= 1000

.PHONY: setup demo test test-full test-gpu check codegen mutate fuzz fuzz-load fuzz-text playground docs vsix clean

setup: $(STAMP)

# timm comes without torchvision, whose build on PyPI does not fit PyTorch for the CPU and stops transformers beside it.
# PyTorch for the CPU where it can be had (a tenth of the size); a PyTorch that is there already is left alone.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than Python 3.11; say which one to use: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@command -v g++ > /dev/null || { echo "error: no g++ found; install a C++17 compiler (apt-get install g++)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "error: $(PYTHON) cannot make a virtual environment; install its venv module (apt-get install python3-venv)" >&2; exit 1; }
	$(BIN)/python -c 'import torch' 2> /dev/null || $(PIP) install -q "torch==$(TORCH)+cpu" 2> /dev/null || \
	  $(PIP) install -q "torch==$(TORCH)"
	$(PIP) install -q -c constraints.txt -e '.[dev,torch]'
	$(PIP) install -q -c constraints.txt --no-deps timm
	@touch $@

demo: $(STAMP)
	$(BIN)/python examples/bert.py --device cpu
	$(BIN)/python examples/import_llama.py --device cpu --layers 2

# the tests of a file stay together: they share libraries and exported models, which two workers would each make or wait for
test: check
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder --durations=8

# every case and all generated sources, in eight shards; what has passed on the same sources is not run again
test-full: check
	$(BIN)/python -m tests.full --jobs $(JOBS) $(if $(SHARD),--shard $(SHARD))

test-gpu: $(STAMP)
	$(BIN)/python -m pytest -q -m gpu

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/pyright

# generated CUDA and HIP sources through nvcc and hipcc; says what it skipped where one is missing
codegen: $(STAMP)
	$(BIN)/python -m tests.codegen.run

# each constraint of each pattern removed in turn; prints those that no test misses; goes on where it was cut off
mutate: $(STAMP)
	$(BIN)/python -m tests.mutate.run --jobs $(JOBS)

# N random graphs through the passes, against the reference; goes on where it was cut off
fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz.run --count $(N) --jobs $(JOBS)

# N damaged and forged files in the loaders of Python; goes on where it was cut off
fuzz-load: $(STAMP)
	$(BIN)/python -m tests.fuzz.load --count $(N) --jobs $(JOBS)

# N malformed texts of the IR and of pipelines, guided by coverage; goes on where it was cut off
fuzz-text: $(STAMP)
	$(BIN)/python -m tests.fuzz.text --count $(N) --jobs $(JOBS)

# the compiler as a page that needs no server: everything in build/playground; needs node and npm
playground: $(STAMP)
	$(BIN)/python -m docs.playground.build

# the documentation as a site, in build/site, with every link checked; has the playground if it was built before
docs: $(STAMP)
	@$(BIN)/python -c 'import mkdocs, material, mkdocstrings' 2> /dev/null || $(PIP) install -q -c constraints.txt -e '.[docs]'
	$(BIN)/python -m docs.site.build

# the extension for VS Code, editors/vscode/ait-mlir.vsix; needs node and npm
vsix:
	@command -v npm > /dev/null || { echo "error: no npm found; install node (apt-get install npm)" >&2; exit 1; }
	cd editors/vscode && npm ci --no-audit --no-fund && npm test && npm run package

clean:
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
