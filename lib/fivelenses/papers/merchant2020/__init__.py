"""Merchant, Rahimtoroghi, Pavlick and Tenney (2020), "What Happens To BERT Embeddings During Fine-tuning?"."""

# The tasks whose examples are two texts, by the columns of these.
SIDES = {"mnli": ("premise", "hypothesis"), "squad": ("question", "context")}
