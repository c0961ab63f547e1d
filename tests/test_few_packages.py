"""What runs without most of the dependencies: single layers, and predictions of saved models."""

import os
import subprocess
import sys

import numpy as np
import pytest

from promissing import NanMLPClassifier

# Dependencies of the package that neither a framework nor NumPy needs.
OTHERS = ("click", "jinja2", "joblib", "matplotlib", "optax", "pandas", "pyarrow", "safetensors")
OTHERS += ("scipy", "sklearn", "threadpoolctl")
USES = {
    "torch": """
import torch
from promissing.torch import NanDropout, NanLinear
net = torch.nn.Sequential(NanDropout(0.5), NanLinear(3, 2, compensation="feature"))
net(torch.tensor([[1.0, torch.nan, 2.0]])).sum().backward()
""",
    "keras": """
import keras, numpy as np
from promissing.keras import NanDense, NanDropout
model = keras.Sequential([NanDropout(0.5), NanDense(2, compensation="shared")])
model.compile("sgd", "mse")
model.fit(np.array([[1.0, np.nan, 2.0]]), np.zeros((1, 2)), verbose=0)
""",
    "jax": """
import jax, jax.numpy as jnp
from promissing.jax import apply, init
params = init(jax.random.key(0), 3, 2, compensation="feature")
jax.grad(lambda p: apply(p, jnp.array([[1.0, jnp.nan, 2.0]])).sum())(params)
""",
}


def run(code, without, **environment):
    blocked = f"import sys\nsys.modules.update(dict.fromkeys({without!r}))\n"
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", blocked + code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


@pytest.mark.slow
@pytest.mark.parametrize("framework", USES)
def test_a_layer_needs_numpy_and_its_framework_alone(framework):
    without = list(OTHERS)
    if framework == "torch":
        without += ["jax", "keras"]
    if framework == "jax":
        without.remove("scipy")  # JAX itself needs it.
    # Keras itself runs on PyTorch here, so that JAX is not needed.
    backend = {"KERAS_BACKEND": "torch"} if framework == "keras" else {}
    without += ["jax"] if framework == "keras" else []
    done = run(USES[framework] + "print('done')", without, **backend)
    assert done.stdout.endswith("done\n"), done.stderr


def test_a_saved_model_predicts_without_jax_matplotlib_and_jinja(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[::5, 0] = np.nan
    model = NanMLPClassifier((4,), n_members=2, max_iter=2, random_state=0).fit(X, X[:, 1] > 0)
    model.save(tmp_path / "model.safetensors")
    np.save(tmp_path / "rows.npy", X)
    code = f"""
import numpy as np, promissing
model = promissing.load({str(tmp_path / "model.safetensors")!r})
rows = np.load({str(tmp_path / "rows.npy")!r})
print(*model.predict_proba(rows)[:, 1])
"""
    without = ["jax", "jaxlib", "optax", "matplotlib", "jinja2", "rich", "click"]
    done = run(code, without)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(
        [float(p) for p in done.stdout.split()], model.predict_proba(X)[:, 1], atol=1e-12
    )
