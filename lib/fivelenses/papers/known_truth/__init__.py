"""Chapter 7: what each lens can see, on encoders of which it is known where, how much and what changed.

`instruments` names the measures and what each is declared to ignore; `measure` takes all of them of models that were
made for the purpose; `scores` asks of each whether it was right; `properties` plants one kind of annotation at a time.
"""
