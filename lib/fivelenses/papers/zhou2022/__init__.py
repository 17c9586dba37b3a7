"""Zhou and Srikumar (2022), "A Closer Look at How Fine-tuning Changes BERT".

`geometry` is measured by DirectProbe and `probes` by classifiers, on the labelled points of `points`: a change of one
lens leaves the records of the other.
"""
