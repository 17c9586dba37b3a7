"""Runs: parameters and profiles, notebooks executed with papermill, rehearsals, and the book."""

from fivelenses.runs.run import Run, begin

__all__ = ["Run", "begin"]
