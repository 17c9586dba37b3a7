r"""Dependency trees as a task: the table, its encoding word by word, and attachment scores.

.. math::

    \mathrm{UAS} = \frac{\#\{w : \hat h_w = h_w\}}{\#\{w\}}, \qquad
    \mathrm{LAS} = \frac{\#\{w : \hat h_w = h_w, \hat r_w = r_w\}}{\#\{w\}},

over all words of a split, the root's word and punctuation included, with universal relations: `nsubj:pass` counts as
`nsubj`. With gold words this is the F1 of the CoNLL shared task (Zeman et al. 2018, section 5). Range: [0, 1].
"""

from collections import Counter
from collections.abc import Sequence

import datasets
import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerBase

from fivelenses.tasks.encoding import encode_words, select

# The target of a word that is not trained on, as in PyTorch's cross-entropy.
IGNORED = -100


def universal(relation: str) -> str:
    """A relation without its subtype.

    Example:
        >>> universal("nsubj:pass")
        'nsubj'
    """
    return relation.partition(":")[0]


def tree_table(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """A treebank's sentences as `tokens`, `heads` and `names`, the universal relations.

    Args:
        frame: `tokens`, `heads` and the relations.
        column: the column that holds the relations.
    """
    names = [[universal(relation) for relation in relations] for relations in frame[column]]
    return pd.DataFrame({"tokens": frame["tokens"], "heads": frame["heads"], "names": names})


def encode_trees(
    table: datasets.Dataset, labels: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> datasets.Dataset:
    """Sentences as tokens with the targets of their words.

    A row has the tokeniser's columns; `word_ids`, the word of each token, -1 for special tokens; `row`, the sentence's
    row in the table; and `heads` and `labels`, a word's head (0: root) and the number of its relation. Both are -100
    for a word that was cut off or that the tokeniser drops, and for a word whose head was. A sentence without any other
    word is left out.

    Args:
        table: `tokens`, `heads`, `names`.
        labels: the relations in the order of their numbers.
        max_length: tokens that a sentence is cut to.
    """
    number = {name: place for place, name in enumerate(labels)}
    columns = encode_words(table["tokens"], tokenizer, max_length)
    targets: dict[str, list] = {"row": [], "heads": [], "labels": []}
    for row, (heads, names) in enumerate(zip(table["heads"], table["names"], strict=True)):
        present = {0, *(word + 1 for word in columns["word_ids"][row])}
        counted = [word in present and head in present for word, head in enumerate(heads, start=1)]
        if any(counted):
            relations = [number[name] for name in names]
            targets["row"].append(row)
            for column, values in (("heads", heads), ("labels", relations)):
                targets[column].append([value if yes else IGNORED for value, yes in zip(values, counted, strict=True)])
    return datasets.Dataset.from_dict(select(columns, targets["row"]) | targets)


def attachment_scores(
    predicted: Sequence[tuple[Sequence[int], Sequence[str]]], gold: Sequence[tuple[Sequence[int], Sequence[str]]]
) -> tuple[float, float]:
    """UAS and LAS over all words of all sentences, each in [0, 1].

    Args:
        predicted, gold: for each sentence, the heads and the relations of its words; subtypes do not count.

    Refused: there is no word, or the sentences have different lengths.

    Example:
        >>> attachment_scores([([2, 0, 1], ["nsubj", "root", "obj"])], [([2, 0, 2], ["nsubj:pass", "root", "obj"])])
        (0.6666666666666666, 0.6666666666666666)
    """
    lengths = [[len(part) for sentence in side for part in sentence] for side in (predicted, gold)]
    if not sum(lengths[1]) or lengths[0] != lengths[1]:
        raise ValueError("Attachment scores need words, and as many predicted as gold ones in every sentence.")
    heads, relations = [], []
    for (heads_here, names_here), (gold_heads, gold_names) in zip(predicted, gold, strict=True):
        heads += [head == gold_head for head, gold_head in zip(heads_here, gold_heads, strict=True)]
        relations += [universal(name) == universal(other) for name, other in zip(names_here, gold_names, strict=True)]
    return float(np.mean(heads)), float(np.mean(np.array(heads) & np.array(relations)))


def chain_score(gold: Sequence[tuple[Sequence[int], Sequence[str]]]) -> float:
    """The null LAS: each word depends on the next, the last is the root, and all have the relation that scores best.

    Example:
        >>> chain_score([([2, 3, 0], ["det", "nsubj", "root"])])
        0.3333333333333333
    """
    return sum(chain_matches(gold)) / sum(len(heads) for heads, _ in gold)


def chain_matches(gold: Sequence[tuple[Sequence[int], Sequence[str]]]) -> list[int]:
    """How many words of each sentence the guess of `chain_score` gets right.

    Example:
        >>> chain_matches([([2, 3, 0], ["det", "nsubj", "root"]), ([0], ["root"])])
        [1, 1]
    """
    right = []
    for heads, names in gold:
        chain = zip([*range(2, len(heads) + 1), 0], heads, names, strict=True)
        right.append([universal(name) for next_word, head, name in chain if next_word == head])
    ((best, _),) = Counter(name for of_sentence in right for name in of_sentence).most_common(1) or [("", 0)]
    return [of_sentence.count(best) for of_sentence in right]
