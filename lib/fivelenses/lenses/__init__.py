"""The lenses: each module is one measure, a page of mathematics that knows no paper, task or file.

Attention (:mod:`~fivelenses.lenses.attention`) and features (``cca``, ``similarities``, from the ``moments`` of a
stream; ``checks`` says what such a measure must pass); the geometry of labels (``directprobe``, ``hulls``); probes
(``mlp_probe``, ``edge_probe``, ``structural_probe``, ``mdl``, with one ``training`` loop); loss landscapes
(``landscape``, ``basin``, of a ``classifier_loss`` whose parameters move in ``directions``); and the distance of
``weights``.

Lenses take NumPy arrays or torch tensors, compute with torch on the device that their input is on, and never change it.
"""
