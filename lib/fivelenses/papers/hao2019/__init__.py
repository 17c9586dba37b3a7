"""Hao, Dong, Wei and Xu (2019), "Visualizing and understanding the effectiveness of BERT".

The paper's low, middle and high layers are the thirds of its 24; here they are the thirds of any encoder's.
"""

RADIUS = 0.1  # the share of its length by which a filter moves when sharpness is measured
