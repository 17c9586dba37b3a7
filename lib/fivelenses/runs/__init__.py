"""Runs: parameters and profiles, notebooks executed with papermill, dry runs, sweeps, and the book."""

from fivelenses.runs.run import begin

__all__ = ["begin"]
