"""
The layer in your framework
===========================

The first layer of a network is replaced; nothing else changes. Feed NaN where a value is missing,
after standardising the columns by their observed values. The task is generated: two groups on a
plane, with a third of the values missing.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(0)
x = rng.normal(size=(2000, 4)).astype("float32")
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype("float32")
x[rng.random(x.shape) < 0.33] = np.nan
x = StandardScaler().fit_transform(x)  # It ignores NaN and keeps it.
curves = {}

# %%
# PyTorch: a training loop
# ------------------------
# ``NanDropout`` makes more values missing while training, so that the network learns to do without
# them.
import torch

from promissing.torch import NanDropout, NanLinear

torch.manual_seed(0)
net = torch.nn.Sequential(
    NanDropout(0.1),
    NanLinear(4, 32, compensation="feature"),
    torch.nn.ReLU(),
    torch.nn.Linear(32, 1),
)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
inputs, targets = torch.tensor(x), torch.tensor(y)
losses = []
for _ in range(150):
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        net(inputs)[:, 0], targets
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
curves["PyTorch"] = losses
print(f"PyTorch: loss {losses[0]:.2f} -> {losses[-1]:.2f}")

# %%
# Keras: a functional model
# -------------------------
import keras

from promissing.keras import NanDense

keras.utils.set_random_seed(0)
entry = keras.Input((4,))
hidden = NanDense(32, "relu", compensation="feature")(entry)
model = keras.Model(entry, keras.layers.Dense(1, "sigmoid")(hidden))
model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy")
history = model.fit(x, y, batch_size=2000, epochs=150, verbose=0)
curves["Keras"] = history.history["loss"]
print(f"Keras: loss {curves['Keras'][0]:.2f} -> {curves['Keras'][-1]:.2f}")

# %%
# Flax NNX: a module with the parameters of the layer
# ---------------------------------------------------
# ``init`` makes a dictionary of arrays, and ``apply`` is a pure function.
import jax
import jax.numpy as jnp
import optax
from flax import nnx

from promissing.jax import apply, init


class FirstLayer(nnx.Module):
    """The layer as a module of Flax."""

    def __init__(self, n_in, n_out, *, rngs):
        made = init(rngs.params(), n_in, n_out, compensation="feature")
        self.weights = nnx.data(
            {name: nnx.Param(value) for name, value in made.items()}
        )

    def __call__(self, x):
        return apply({name: value[...] for name, value in self.weights.items()}, x)


class Net(nnx.Module):
    """Two layers."""

    def __init__(self, *, rngs):
        self.first, self.last = (
            FirstLayer(4, 32, rngs=rngs),
            nnx.Linear(32, 1, rngs=rngs),
        )

    def __call__(self, x):
        return self.last(jax.nn.relu(self.first(x)))[:, 0]


flax_net = Net(rngs=nnx.Rngs(0))
flax_optimizer = nnx.Optimizer(flax_net, optax.adam(0.01), wrt=nnx.Param)


@nnx.jit
def step(net, optimizer, x, y):
    """Make one step of training."""
    loss, gradients = nnx.value_and_grad(
        lambda net: optax.sigmoid_binary_cross_entropy(net(x), y).mean()
    )(net)
    optimizer.update(net, gradients)
    return loss


losses = [
    float(step(flax_net, flax_optimizer, jnp.asarray(x), jnp.asarray(y)))
    for _ in range(150)
]
curves["Flax NNX"] = losses
print(f"Flax NNX: loss {losses[0]:.2f} -> {losses[-1]:.2f}")

# %%
# Equinox: the parameters as a field
# ----------------------------------
import equinox as eqx


class EquinoxNet(eqx.Module):
    """Two layers."""

    first: dict
    last: eqx.nn.Linear

    def __init__(self, key):
        one, two = jax.random.split(key)
        made = init(one, 4, 32, compensation="feature")
        self.first, self.last = made, eqx.nn.Linear(32, 1, key=two)

    def __call__(self, x):
        return self.last(jax.nn.relu(apply(self.first, x)))[0]


@eqx.filter_jit
def equinox_step(net, state, x, y):
    """Make one step of training."""
    loss, gradients = eqx.filter_value_and_grad(
        lambda net: optax.sigmoid_binary_cross_entropy(jax.vmap(net)(x), y).mean()
    )(net)
    updates, state = adam.update(gradients, state)
    return eqx.apply_updates(net, updates), state, loss


adam = optax.adam(0.01)
equinox_net = EquinoxNet(jax.random.key(0))
state = adam.init(eqx.filter(equinox_net, eqx.is_array))
losses = []
for _ in range(150):
    equinox_net, state, loss = equinox_step(
        equinox_net, state, jnp.asarray(x), jnp.asarray(y)
    )
    losses.append(float(loss))
curves["Equinox"] = losses
print(f"Equinox: loss {losses[0]:.2f} -> {losses[-1]:.2f}")

# %%
# All four learn the same task. The training loss of PyTorch is higher, because only that network
# loses more values while training, by ``NanDropout``.
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, losses in curves.items():
    ax.plot(losses, label=name)
ax.set(xlabel="step", ylabel="training loss")
ax.legend(frameon=False)
