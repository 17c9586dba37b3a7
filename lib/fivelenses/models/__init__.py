"""Encoders addressed by layer and part, their heads, batches for them, and surgery on their parts."""
