"""What words without their order are worth on the examples that models were fine-tuned on, example by example.

A fine-tuned model that is no better than logistic regression on counts of words has not shown that it reads.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from fivelenses import tasks
from fivelenses.tasks.examples import TaskData, with_examples

REGULARISATION = 1.0


def words_by_example(training_set: Mapping) -> pd.DataFrame:
    """The score of a bag of words on each development example.

    Args:
        training_set: `task` (of texts with one label each), `source`, `examples` (None for all) and `examples_seed` as
            in a specification; what else it has tells records apart.

    Returns:
        The columns of `checkpoints.predictions.by_example` but for `encoder` and `address`, with `seed` that of the
        training examples, and `examples`, how many these are.

    Example:
        >>> rows = words_by_example({"task": "rte", "source": "toyworld", "examples": 200, "examples_seed": 0})
        >>> rows["examples"].unique().tolist(), bool((rows["score"] == (rows["label"] == rows["predicted"])).all())
        ([200], True)
    """
    task, source, examples, seed = (training_set[name] for name in ("task", "source", "examples", "examples_seed"))
    data = with_examples(tasks.load(task, source, ("train", "validation")), examples, seed)
    gold, predicted = np.array(data.splits["validation"][data.task.label]), words_predicted(data)
    guessed = np.bincount(gold).argmax()
    about = {"task": task, "seed": seed, "examples": data.splits["train"].num_rows, "metric": data.task.metric}
    columns = {"score": predicted == gold, "weight": np.ones(len(gold)), "null": gold == guessed}
    return pd.DataFrame(
        about
        | {"example": np.arange(len(gold), dtype=np.int32)}
        | {name: values.astype(np.float32) for name, values in columns.items()}
        | {"label": gold.astype(np.int16), "predicted": predicted.astype(np.int16)}
    )


def words_predicted(data: TaskData) -> np.ndarray:
    """(examples,) labels of the development examples by logistic regression on counts of words, of each input apart."""
    counters = {column: CountVectorizer(token_pattern=r"\S+") for column in data.task.inputs}
    for column, counter in counters.items():
        counter.fit(data.splits["train"][column])

    def counts(split: str) -> csr_matrix:
        return hstack([counter.transform(data.splits[split][column]) for column, counter in counters.items()]).tocsr()

    model = LogisticRegression(C=REGULARISATION, max_iter=2_000)
    return model.fit(counts("train"), np.array(data.splits["train"][data.task.label])).predict(counts("validation"))
