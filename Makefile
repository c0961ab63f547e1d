# Everything runs in a virtual environment of its own; nothing else needs to be installed.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# pip would compile all of TensorFlow. Python compiles what is imported, and is to keep it, whatever
# the environment says: without, every process takes nine seconds longer to start.
export PIP_NO_COMPILE := 1
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lowest lint bench figures docs clean

demo: .venv/base
	$(BIN)/promissing demo --out promissing-demo

# What has but one process goes two at a time; then all tests, on both cores.
test: .venv/test
	$(MAKE) -j 2 lint keras-torch keras-tensorflow
	KERAS_BACKEND=jax $(BIN)/python -m pytest -n 2 --dist worksteal -q

keras-%: .venv/test
	KERAS_BACKEND=$* $(BIN)/python -m pytest -q tests/test_keras.py

# The lowest versions that pyproject.toml allows, in an environment of their own.
lowest: .venv-lowest/done
	.venv-lowest/bin/python -m pytest -q tests/test_persist.py tests/test_tables.py \
		tests/test_pruner.py tests/test_files.py tests/test_cli.py tests/test_report.py
	.venv-lowest/bin/python -m pytest -q tests/test_mlp_sklearn.py -k "not test_scikit_learn"

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: .venv/test
	$(BIN)/python benchmarks/layers.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/estimators.py

figures: .venv/base
	$(BIN)/python docs/figures/fading.py
	$(BIN)/python docs/figures/undershoot.py

docs: .venv/docs
	$(BIN)/python -m sphinx -qW --keep-going docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

.venv/base: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# torch comes first and alone: resolved beside others, a newer build would bring CUDA along.
.venv/test: .venv/base
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --group test --group docs
	touch $@

.venv/docs: .venv/base
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

.venv-lowest/done: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --constraint constraints-lowest.txt \
		--editable . hypothesis polars pytest
	touch $@

clean:
	rm -rf .venv .venv-lowest docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
