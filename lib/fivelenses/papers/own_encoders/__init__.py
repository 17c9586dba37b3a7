"""Chapter 8: whether encoders of one's own are any good: pre-training, scores, and what their layers hold."""
