"""Runs: parameters and profiles, notebooks executed with papermill, dry runs, sweeps, and the book."""
