# Everything runs in a virtual environment in .venv; nothing else needs to be installed.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -q
PARALLEL := -n 2 --dist worksteal
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pip would compile all of TensorFlow, although Python compiles what it imports. Python must keep the
# result: without it every process takes nine seconds longer to start.
export PIP_NO_COMPILE := 1
unexport PYTHONDONTWRITEBYTECODE
export KERAS_BACKEND ?= jax
# JAX keeps what it compiles: most of the time of a first test run is compilation.
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.venv/compiled

.PHONY: demo check test test-extras fast lowest lint bench figures docs clean

demo: .venv/base
	$(BIN)/promissing demo --out promissing-demo

# The checks of the code and the fast tests, in two minutes.
check: .venv/test
	$(MAKE) -j 2 --output-sync lint fast

fast: .venv/test
	$(PYTEST) $(PARALLEL) -m "not slow and not extras"

# The checks and all tests but the extras. The processes that cannot use both cores run in pairs.
test: .venv/test
	$(MAKE) -j 2 --output-sync lint keras-torch keras-tensorflow
	$(PYTEST) $(PARALLEL) -m "not extras"

keras-%: .venv/test
	KERAS_BACKEND=$* $(PYTEST) tests/test_keras.py tests/export/test_export.py -k keras

# Tests that need a browser or another heavy program. pytest prints what it skips, and why; it exits
# with 5 if there is no test.
test-extras: .venv/test
	@$(PYTEST) -m extras; code=$$?; \
	if [ $$code -eq 5 ]; then echo "No test has the marker extras: nothing was run."; \
	else exit $$code; fi

# The lowest versions that pyproject.toml allows, in an environment of their own.
lowest: .venv-lowest/done
	.venv-lowest/bin/python -m pytest -q -m "not extras" tests/cli tests/encoding tests/io \
		tests/report tests/estimators/test_persistence.py tests/test_pruner.py
	.venv-lowest/bin/python -m pytest -q tests/estimators/test_mlp_sklearn.py \
		-k "not test_scikit_learn"

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_structure.py
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/python tools/check_docstrings.py

bench: .venv/test
	$(BIN)/python benchmarks/layers.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/estimators.py

figures: .venv/base
	$(BIN)/python docs/figures/fading.py
	$(BIN)/python docs/figures/undershoot.py

# Tutorials and the gallery are executed; they need the packages of the tests.
docs: .venv/test
	rm -rf docs/auto_tutorials docs/auto_examples
	$(BIN)/python -m sphinx -qW --keep-going docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

.venv/base: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[demo]"
	touch $@

# torch is installed first and alone: resolved with other packages, a newer build brings CUDA.
.venv/test: .venv/base
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --group test --group docs
	touch $@

.venv-lowest/done: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --constraint constraints-lowest.txt \
		--editable ".[demo]" hypothesis polars pytest
	touch $@

clean:
	rm -rf .venv .venv-lowest docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
