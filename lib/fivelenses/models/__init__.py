"""Encoders addressed by layer and part, heads, surgery on them, and pre-training."""
