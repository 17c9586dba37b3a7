"""Small encoders made from text: word pieces, blocks of text, masking, and the training run."""
