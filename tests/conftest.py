"""Settings shared by all tests."""

import atexit
import os
import shutil
import tempfile

# Before JAX is imported: two processes share two cores, and threads for both in each only disturb.
os.environ.setdefault("NPROC", "1")
# Before PyTorch and TensorFlow are: some virtual machines announce AMX and do not run it, and a
# product of bfloat16 is then an illegal instruction. What oneDNN takes instead gives the same.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
# What one process has compiled no other compiles again: not the other of xdist, which inherits
# this, and none that a test starts.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    COMPILED = tempfile.mkdtemp(prefix="promissing-compiled-")
    atexit.register(shutil.rmtree, COMPILED, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = COMPILED
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

import pytest
from hypothesis import settings

# Compiling dominates the first example of a framework, so no deadline; derandomised, so that the
# same commit gives the same verdict.
settings.register_profile("promissing", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("promissing")

# Their networks train for a few epochs: nearly all of the time is compiling, once for every shape.
QUICK = {
    *("test_cli", "test_clinical", "test_comparison", "test_demo", "test_docs"),
    *("test_fusion_sklearn", "test_mlp_sklearn", "test_package", "test_report", "test_browser"),
    *("test_openml_study", "test_simulation", "test_strategies", "test_persist"),
    *("test_displays", "test_predictions"),
}


@pytest.fixture(scope="module", autouse=True)
def _compiling_quickly(request):
    """Compile in half the time programs that will hardly run."""
    if request.module.__name__.rpartition(".")[2] not in QUICK:
        yield
        return
    import jax

    # In the environment too, for the processes that are started.
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    del os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"]
