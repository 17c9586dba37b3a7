"""What Hao, Dong, Wei and Xu (2019), "Visualizing and understanding the effectiveness of BERT", measure.

The paper's low, middle and high layers are the thirds of its 24; here they are the thirds of any encoder's.
"""
