"""The toy world: a lexicon, a meaning, a grammar with full annotation, and the tasks that come from them."""
