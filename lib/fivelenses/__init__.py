"""Five lenses on what fine-tuning does to BERT: a library as thin as the five papers allow, and a book over it."""

import importlib
import warnings

# Progress is told in plain lines here, so that bars cannot be drawn as widgets is no news to a reader.
warnings.filterwarnings("ignore", message="IProgress not found")


def __getattr__(name: str):
    """`from fivelenses import compare`, whose libraries take seconds to load.

    Its module has another name, since it would take the place of the function. No import statement names it, or all
    measuring code would depend on it.
    """
    if name == "compare":
        return importlib.import_module("fivelenses.two_checkpoints").compare
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
