"""Hao, Dong, Wei and Xu (2020), "Investigating Learning Dynamics of BERT Fine-Tuning".

The paper counts 24 layers from 0; here layers are 1…L, so its layers 0–10 are our 1–11, the lower 11/24 of any encoder.
"""
