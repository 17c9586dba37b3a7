"""Merchant, Rahimtoroghi, Pavlick and Tenney (2020), "What Happens To BERT Embeddings During Fine-tuning?"."""
