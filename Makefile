# Everything a developer or CI does with memdiag. Needs Python >= 3.10 with venv and pip, make, git.
#
#   make demo      three real torch trainings under `memdiag run`: a leak, a warm-up, a healthy one
#   make test      all tests but the slow ones, on all cores
#   make test-all  all tests
#   make check     format, lint, types, import contract, README and tests: the gate
#   make bench     the figures that the documentation quotes; SEED=n draws other series,
#                  ARGS="decide live" runs these alone
#   make bench-slow, pictures, fuzz, kills, behaviour, attack, gpu-check   longer ones, for those
#                  who need them
#   make bench-programs  verdict, rate and kind of memory of 115 real programs, five runs of each: hours;
#                  ARGS="--runs 1 --jobs 2 --style numpy" for less
#   make bench-culprits  who names the line that leaks, on 133 programs: memdiag and other tools
#   make trainers  other people's trainers (Transformers, Lightning, Keras, JAX ...) and launchers
#   make trackers  what --to sends to W&B and MLflow, read back
#   make engines   dask, Ray, MPI (mpiexec), Spark (java) and an S3 server judge many recordings
#   make fmt       format and fix what can be fixed
#   make gallery   pictures of real runs, for docs/gallery.md
#   make uplot     renew the released file of uPlot that HTML reports hold (needs npm)
#   make notebook  run docs/notebook.ipynb, and keep what it shows
#   make rooms     redraw the picture of the packages in docs/architecture.md
#   make readme    rewrite the README's help screens and reports from what memdiag really prints
#   make docs      build the site of the documentation into site/ and check its links
#   make dist      build the wheel and the sdist into dist/
#   make clean     remove what was built
#
#   PYTHON=python3.13   with another Python, in a virtual environment of its own
#   TORCH=auto|1|0      torch for demo and tests: `auto` takes a CPU build if pip finds one and
#                       else does without; 1 takes whatever build there is (on Linux that may mean
#                       several GB of CUDA packages); 0 does without
#   TESTS=tests/cli     only these tests; ARGS="-k leak" more for pytest ("-n 0": one process)

PYTHON ?= python3
TORCH ?= auto
TESTS ?= tests
ARGS ?=

SERIES := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
ifeq ($(SERIES),)
$(error $(PYTHON) does not run; name a Python >= 3.10: make PYTHON=/path/to/python3 ...)
endif
VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(SERIES))
BIN := $(VENV)/bin
# The stamps carry the Python's version, so that an upgraded python3 gets a new environment.
READY := $(VENV)/.ready-$(SERIES)
# Asked again when pip is told of other places to look.
PLACES := $(if $(PIP_EXTRA_INDEX_URL)$(PIP_INDEX_URL)$(PIP_FIND_LINKS),-more)
TORCH_READY := $(VENV)/.torch-$(SERIES)-$(TORCH)$(PLACES)
BENCH_READY := $(VENV)/.bench-$(SERIES)
TRAINERS := $(VENV)-trainers
DOCS := $(VENV)-docs
DOCS_READY := $(DOCS)/.ready-$(SERIES)
TRAINERS_READY := $(TRAINERS)/.ready-$(SERIES)
TRACKERS := $(VENV)-trackers
TRACKERS_READY := $(TRACKERS)/.ready-$(SERIES)
ENGINES := $(VENV)-engines
ENGINES_READY := $(ENGINES)/.ready-$(SERIES)
PYTEST := $(BIN)/python -m pytest --numprocesses logical --dist worksteal
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check check-static fmt readme bench clean install
.PHONY: bench-slow pictures fuzz kills behaviour attack gpu-check trainers bench-programs
.PHONY: bench-culprits docs dist
.PHONY: check-format check-lint check-types check-imports check-sizes check-readme check-touches
.PHONY: check-decision check-schemas check-rooms check-uplot check-api check-pages
.PHONY: rooms uplot notebook gallery

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

install: $(READY) $(TORCH_READY)

demo: $(READY) $(TORCH_READY)
	@$(BIN)/python tools/demo.py

test: $(READY) $(TORCH_READY)
	@$(PYTEST) -m "not slow" $(TESTS) $(ARGS)

test-all: $(READY) $(TORCH_READY)
	@$(PYTEST) $(TESTS) $(ARGS)

check: check-static test-all

# Each of these says what it looks at, and then nothing if all is well.
check-static: check-format check-lint check-types check-imports check-sizes check-readme \
	check-touches check-decision check-schemas check-rooms check-uplot check-api \
	check-pages

check-format: $(READY)
	@echo "format"; $(BIN)/ruff format --check --quiet .

check-lint: $(READY)
	@echo "lint"; $(BIN)/ruff check --quiet .

check-types: $(READY)
	@echo "types"; $(BIN)/mypy --no-error-summary

check-imports: $(READY)
	@echo "import contract"; $(BIN)/lint-imports --no-logo > $(VENV)/contract.txt || \
		{ cat $(VENV)/contract.txt; exit 1; }

check-sizes: $(READY)
	@echo "sizes of files and functions"; $(BIN)/python tools/sizes.py

check-readme: $(READY)
	@echo "screens in the documentation"; $(BIN)/python tools/readme.py --check

check-touches: $(READY)
	@echo "what is opened, made and executed"; $(BIN)/python tools/touches.py --check

check-rooms: $(READY)
	@echo "picture of the packages"; $(BIN)/python tools/rooms.py --check

check-api: $(READY)
	@echo "reference of the Python interface"; $(BIN)/python tools/api_page.py --check

check-pages: $(READY)
	@echo "pages of the documentation"; $(BIN)/python tools/site_pages.py
	@$(BIN)/python tools/errors_page.py --check

check-decision: $(READY)
	@echo "what decides, and its numbers"; $(BIN)/python tools/decision_table.py --check

check-uplot: $(READY)
	@echo "files of uPlot"; $(BIN)/python tools/uplot.py --check

check-schemas: $(READY)
	@echo "JSON schemas"; $(BIN)/python tools/schemas.py --check

fmt: $(READY)
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

readme: $(READY)
	@$(BIN)/python tools/readme.py

bench: $(READY) $(TORCH_READY) $(BENCH_READY)
	@$(BIN)/python tools/bench.py $(if $(SEED),--seed $(SEED)) $(ARGS)

# Five times as many series as `make bench` judges, and the tables and pictures of the documents.
bench-slow: $(READY) $(TORCH_READY) $(BENCH_READY)
	@$(BIN)/python benchmarks/decide.py --slow $(if $(SEED),--seed $(SEED))

# Seven hours, half of that with ARGS="--write --jobs 2"; --resume continues an interrupted call, and
# ARGS="--runs 1 native worker" runs these alone.
bench-programs: $(READY) $(TORCH_READY)
	@$(BIN)/python benchmarks/programs/run.py $(if $(ARGS),$(ARGS),--write)

# Who names the line that leaks, memdiag and other tools, on the programs of fixtures/programs/leaks.
# An hour or two; ARGS="--tools memdiag --only losses_kept" for less.
bench-culprits: $(READY) $(TORCH_READY) $(BENCH_READY)
	@$(BIN)/python benchmarks/culprits.py $(if $(ARGS),$(ARGS),--write)

# The picture of the packages in docs/architecture.md.
rooms: $(READY)
	@$(BIN)/python tools/rooms.py

# The released file of uPlot that HTML reports hold: ARGS=1.6.32 for another version. Needs npm.
uplot: $(READY)
	@$(BIN)/python tools/uplot.py $(ARGS)

# Pictures of real runs, for docs/gallery.md: some minutes. Look at them.
gallery: $(READY) $(TORCH_READY)
	@$(BIN)/python tools/gallery.py $(ARGS)

# The site of the documentation, in an environment of its own. A link that leads nowhere is an error.
docs: $(DOCS_READY)
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build $(ARGS)
	@echo "site/index.html"

# What is published. hatchling, which builds it, is one of the tools in $(VENV).
dist: $(READY)
	@$(BIN)/python -m hatchling build -d dist

# The guide with what its cells show.
notebook: $(READY)
	@$(BIN)/python -c "import nbclient, nbformat; \
		book = nbformat.read('docs/notebook.ipynb', 4); here = {'metadata': {'path': 'docs'}}; \
		nbclient.NotebookClient(book, record_timing=False, resources=here).execute(); \
		nbformat.write(book, 'docs/notebook.ipynb')"
	@rm -rf docs/.memdiag

pictures: $(READY) $(BENCH_READY)
	@$(BIN)/python tools/method_pictures.py

# Ten minutes or so of hostile input to every reader.
fuzz: $(READY)
	@MEMDIAG_FUZZ=100000 $(BIN)/python -m pytest tests/recording/test_fuzzing.py --timeout=3600 $(ARGS)

# Two hundred targets killed by SIGKILL at random moments: nothing that they wrote may be lost.
kills: $(READY)
	@MEMDIAG_KILLS=200 $(BIN)/python -m pytest tests/probe/test_survival.py -k sigkill $(ARGS)

# Test suites of public packages, with and without memdiag: every test must end as it does alone.
behaviour: $(READY)
	@$(BIN)/python benchmarks/own_behaviour.py $(ARGS)

# Hostile users, files, rings, signals and disks against memdiag and what it runs; half an hour. Some
# parts need root, two users and a tmpfs, and say so where they are left out. docs/security.md.
attack: $(READY)
	@$(BIN)/python -m benchmarks.attack $(ARGS)

# In an environment of its own: these bring a hundred packages.
trainers: $(TRAINERS_READY)
	@MEMDIAG_TRAINERS=1 $(TRAINERS)/bin/python -m pytest tests/trainers $(ARGS)

# In an environment of its own, too.
trackers: $(TRACKERS_READY)
	@MEMDIAG_TRACKERS=1 $(TRACKERS)/bin/python -m pytest tests/trackers $(ARGS)

# In an environment of its own, too. Without mpiexec or java, theirs are left out.
engines: $(ENGINES_READY)
	@MEMDIAG_ENGINES=1 $(ENGINES)/bin/python -m pytest tests/engines $(ARGS)
	@$(ENGINES)/bin/python -m pytest tests/fleet $(ARGS)  # in a process without engines

# Real CUDA trainings, for a machine with an NVIDIA GPU.
gpu-check: $(READY)
	@$(BIN)/python tools/torch_build.py 1
	@$(BIN)/python tools/gpu_check.py $(ARGS)

clean:
	rm -rf build dist site demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis \
		.import_linter_cache .venv .venv-3.* .venv*-trainers .venv*-trackers .venv*-engines .venv*-docs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@echo "installing memdiag and its tools into $(VENV) (Python $(SERIES); once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "memdiag needs Python >= 3.10")'
	@test ! -d $(VENV) || $(BIN)/python -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "$(SERIES)")' \
		2>/dev/null || rm -rf $(VENV)
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade "pip>=23.2"
	@$(PIP) install --editable ".[dev]"
	@$(BIN)/python -m compileall -q memdiag
	@touch $@

$(TORCH_READY): $(READY)
	@$(BIN)/python tools/torch_build.py $(TORCH)
	@touch $@

$(TRAINERS_READY): pyproject.toml
	@echo "installing other people's trainers into $(TRAINERS) (once)"
	@test -d $(TRAINERS) || $(PYTHON) -m venv $(TRAINERS)
	@$(TRAINERS)/bin/python -m pip --disable-pip-version-check -qq install --upgrade "pip>=23.2"
	@$(TRAINERS)/bin/python -m pip --disable-pip-version-check -qq install --editable ".[dev]"
	@$(TRAINERS)/bin/python tools/torch_build.py $(TORCH)
	@$(TRAINERS)/bin/python -m pip --disable-pip-version-check -qq install --editable ".[dev,trainers]"
	@touch $@

$(DOCS_READY): pyproject.toml
	@echo "installing what builds the documentation into $(DOCS) (once)"
	@test -d $(DOCS) || $(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip --disable-pip-version-check -qq install --upgrade "pip>=25.1"
	@$(DOCS)/bin/python -m pip --disable-pip-version-check -qq install --group docs
	@touch $@

$(TRACKERS_READY): pyproject.toml
	@echo "installing W&B and MLflow into $(TRACKERS) (once)"
	@test -d $(TRACKERS) || $(PYTHON) -m venv $(TRACKERS)
	@$(TRACKERS)/bin/python -m pip --disable-pip-version-check -qq install --upgrade "pip>=23.2"
	@$(TRACKERS)/bin/python -m pip --disable-pip-version-check -qq install --editable ".[dev,trackers]"

$(ENGINES_READY): pyproject.toml
	@echo "installing engines and a store into $(ENGINES) (once)"
	@test -d $(ENGINES) || $(PYTHON) -m venv $(ENGINES)
	@$(ENGINES)/bin/python -m pip --disable-pip-version-check -qq install --upgrade "pip>=23.2"
	@$(ENGINES)/bin/python -m pip --disable-pip-version-check -qq install --editable ".[dev,engines]"
	@touch $@

$(BENCH_READY): $(READY)
	@$(PIP) install --editable ".[dev,bench]"
	@touch $@
