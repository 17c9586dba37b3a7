"""Chapter 6: whether the lenses of the five papers agree on which layers fine-tuning changes.

The same fine-tuned models are seen through all of them: `measure` makes one tidy table of it, `agreement` asks whether
its measures order the layers alike, and `statement` says in words where they part.
"""
