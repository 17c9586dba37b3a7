"""The parameters of each chapter, in a module named after its paper."""
