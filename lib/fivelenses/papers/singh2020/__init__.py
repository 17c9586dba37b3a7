"""Singh and Giovanardi (2020), "How much does pre-trained information help? Partially re-initializing BERT during
fine-tuning to analyze the contribution of layers": measurements, exhibits and claims.
"""
