"""Checkpoints by content: one frozen specification, one fine-tuning, shared by whoever asks."""
