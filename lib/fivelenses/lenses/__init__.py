"""The lenses: each module is one measure, a page of mathematics that knows no paper, task or file.

- :mod:`~fivelenses.lenses.attention`: Jensen–Shannon divergence between two models' attentions.
- :mod:`~fivelenses.lenses.cca`: SVCCA and PWCCA between two representations of the same tokens.
- :mod:`~fivelenses.lenses.cka`: linear CKA, and its debiased form.
- :mod:`~fivelenses.lenses.similarities`: mutual neighbours, the Procrustes distance, and the null of any measure.
- :mod:`~fivelenses.lenses.moments`: the second moments that these need, gathered from a stream.
- :mod:`~fivelenses.lenses.directprobe`: clusters of one label whose convex hulls meet no other label's.
- :mod:`~fivelenses.lenses.hulls`: the distance between two convex hulls, with its proof.
- :mod:`~fivelenses.lenses.mlp_probe`: what perceptrons with two hidden layers read from a representation.
- :mod:`~fivelenses.lenses.landscape`: a loss along a line and over a plane of parameters, and its sharpness.
- :mod:`~fivelenses.lenses.basin`: the width, area and path of such a curve or surface.
- :mod:`~fivelenses.lenses.directions`: parameters as vectors, and a trajectory of them projected on a landscape.
- :mod:`~fivelenses.lenses.parameter_motion`: a model's layers as parameters that move and are restored.
- :mod:`~fivelenses.lenses.classifier_loss`: the loss of a sequence classifier at any point of its parameter space.
- :mod:`~fivelenses.lenses.weights`: how far the weights of each layer have moved.
- :mod:`~fivelenses.lenses.rsa`: whether the same pairs of tokens are similar in two representations.
- :mod:`~fivelenses.lenses.structural_probe`: syntax trees as distances and depths in a projection.
- :mod:`~fivelenses.lenses.trees`: the distances and depths of a tree, and how well predicted ones agree.
- :mod:`~fivelenses.lenses.mdl`: the bits that labels cost if a probe learns as it reads them.
- :mod:`~fivelenses.lenses.edge_probe`: what a small classifier reads from one span or two.
- :mod:`~fivelenses.lenses.training`: the training loop of all probes.
- :mod:`~fivelenses.lenses.checks`: what a measure of two representations must pass.
- :mod:`~fivelenses.lenses.arrays`: the arrays that lenses take, and their checks.

Lenses take NumPy arrays or torch tensors, compute with torch on the device that their input is on, and never change it.
"""
