"""Five lenses on what fine-tuning does to BERT: a library as thin as the five papers allow, and a book over it."""
