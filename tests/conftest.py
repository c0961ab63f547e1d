"""Settings shared by all tests, and which of them are slow."""

import atexit
import os
import shutil
import tempfile
from collections import defaultdict
from importlib.metadata import version

# Before JAX is imported: two processes share two cores, so each uses one thread.
os.environ.setdefault("NPROC", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Before PyTorch and TensorFlow are imported: some virtual machines announce AMX but cannot run it,
# and a product of bfloat16 is then an illegal instruction. The results are the same without AMX.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
# XLA compiles in two thirds of the time with these settings, and the programs are hardly slower. A
# flag that a later version does not know would end the process, so later versions get none.
if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11) and not os.environ.get(
    "PROMISSING_EXACT"
):
    os.environ.setdefault(
        "XLA_FLAGS",
        "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
    )
# Processes share what they compile: the workers of xdist, and those that a test starts. The
# Makefile sets a directory that later runs use, too.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    COMPILED = tempfile.mkdtemp(prefix="promissing-compiled-")
    atexit.register(shutil.rmtree, COMPILED, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = COMPILED
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import pytest
from hypothesis import settings

# The first example includes compilation, so there is no deadline. Derandomised, so that the same
# commit gives the same result.
settings.register_profile("promissing", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("promissing")

# Most of the time of these tests is compilation, once for every shape: their networks train for a
# few epochs. They compile without optimisation, in half the time. The tests of the engine and of
# the layers, and golden predictions bit for bit, use the optimised programs.
COMPILED_QUICKLY = (
    *("tests/cli/", "tests/compare/", "tests/encoding/", "tests/estimators/", "tests/export/"),
    "tests/inspection/",
    *("tests/networks/", "tests/report/", "tests/studies/", "tests/uncertainty/"),
    *("tests/test_docs", "tests/test_package", "tests/test_old_names"),
    *(() if os.environ.get("PROMISSING_EXACT") else ("tests/test_golden",)),
)
# Nearly every test of these files trains a network, which takes two seconds or more. `make check`
# runs a sample: the first case of the first test functions in each file. All others are slow.
TRAINING = (
    *("tests/cli/", "tests/compare/", "tests/estimators/", "tests/report/", "tests/studies/"),
    *("tests/training/", "tests/test_jax.py", "tests/test_keras.py", "tests/test_package.py"),
)
SAMPLE = 6
# Slow tests in other files.
SLOW = (
    *("tests/datasets/test_cohort.py::test_models_score", "tests/test_torch.py::test_onnx_file"),
    *("tests/datasets/test_cohort.py::test_so_do_they", "tests/test_torch.py::test_compile"),
    *("tests/inspection/test_displays.py::test_neutralizers_of_a_fusion_model",),
)


@pytest.fixture(scope="module", autouse=True)
def _compile_quickly(request):
    """Compile without optimisation in the files that are listed above."""
    if not request.node.nodeid.startswith(COMPILED_QUICKLY):
        yield
        return
    import jax

    # In the environment too, for the processes that tests start.
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    del os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"]


def pytest_collection_modifyitems(items):
    """Mark slow tests, and tests in a browser as extras."""
    functions = defaultdict(set)
    for item in items:
        seen = functions[item.path]
        first_case = item.originalname not in seen
        seen.add(item.originalname)
        sampled = first_case and len(seen) <= SAMPLE
        if item.nodeid.startswith(SLOW) or (item.nodeid.startswith(TRAINING) and not sampled):
            item.add_marker(pytest.mark.slow)
        if item.path.name == "test_browser.py":
            item.add_marker(pytest.mark.extras)
