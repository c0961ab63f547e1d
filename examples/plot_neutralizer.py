"""
What a missing value does inside the layer
==========================================

A missing input changes a neuron as if a certain value stood in its place: the neutralizer. It is
never used to compute anything, but it can be read from a layer.
"""

import torch

from promissing.inspection import NeutralizerDisplay
from promissing.torch import NanLinear

torch.manual_seed(0)
layer = NanLinear(6, 8, compensation="shared")
with torch.no_grad():
    layer.bias.uniform_(-0.5, 0.5)
names = ["age", "dose", "weight", "crp", "sodium", "pulse"]
NeutralizerDisplay(layer.neutralizers(), names).plot()

# %%
# Replacing the missing value by the neutralizer of a neuron gives the same activation.
x = torch.randn(1, 6)
gap = x.clone()
gap[0, 3] = torch.nan
filled = x.clone()
filled[0, 3] = float(layer.neutralizers()[0, 3])
with torch.no_grad():
    print(layer(gap)[0, 0].item(), layer(filled)[0, 0].item())
