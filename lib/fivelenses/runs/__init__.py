"""Runs: parameters and profiles, notebooks executed with papermill, rehearsals, sweeps, and the book."""

from fivelenses.runs.run import Run, begin

__all__ = ["Run", "begin"]
