"""Chapter 0: the toy world's tasks by example, its annotation, and what pre-training is worth on it."""
