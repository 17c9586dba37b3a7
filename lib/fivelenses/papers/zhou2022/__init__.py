"""Zhou and Srikumar (2022), "A Closer Look at How Fine-tuning Changes BERT".

What DirectProbe measures is in `measure`, what classifier probes read in `probing`: neither's records know the other's
code. Both look at the labelled points of `labelled`.
"""
