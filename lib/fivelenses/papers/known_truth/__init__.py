"""What chapter 7 measures: `changes`, all measures of models of which it is known what changed; `properties`, what is
read of planted annotation.
"""
