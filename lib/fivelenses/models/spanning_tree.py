r"""The best dependency tree of a sentence: Chu and Liu's and Edmonds' algorithm with a single root.

Among the trees over :math:`n` words, each given by the heads :math:`h_1, \dots, h_n` (0 is the root), it finds

.. math::

    \hat h = \operatorname*{arg\,max}_{h \text{ is a tree},\ \#\{i : h_i = 0\} = 1} \sum_{i=1}^{n} s_{i h_i}.

Every word takes its best head. Where these arcs form a cycle, the cycle is contracted into one node, whose arc from
:math:`j` is worth what entering the cycle at its best word gains over the arc that the word gives up; the smaller
problem is solved and the cycle opened at the word that was entered. Time is :math:`O(n^2)` per contraction, of which
there are fewer than :math:`n`. Sources: Chu and Liu 1965; Edmonds 1967; for parsing McDonald et al. 2005.

Shapes: scores (words, 1 + words), heads (words,).
"""

import numpy as np


def spanning_tree(scores: np.ndarray) -> np.ndarray:
    """The heads of the tree with the highest sum of scores among those with one arc from the root.

    The algorithm alone may give the root several arcs. Here the scores of all the root's arcs are lowered by more than
    the sums of two trees can differ otherwise, so that a second arc from the root costs more than it gains; trees with
    one such arc keep their order.

    Args:
        scores: (words, 1 + words) of each word's heads; column 0 is the root, and a word's own column is not read.

    Returns:
        (words,) the number of each word's head, from 1, and 0 for the one root.

    Refused: no word, another shape, or scores that are not finite.

    Example:
        >>> spanning_tree(np.array([[2.0, 0.0, 1.0], [2.0, 1.5, 0.0]]))
        array([0, 1])
    """
    scores = np.asarray(scores, dtype=float)
    n = len(scores)
    if not n or scores.shape != (n, n + 1):
        raise ValueError(
            f"Scores of shape {scores.shape} are no sentence: give (words, 1 + words) and at least one word."
        )
    matrix = np.zeros((n + 1, n + 1))
    matrix[1:] = scores
    np.fill_diagonal(matrix, 0.0)
    if not np.isfinite(matrix).all():
        raise ValueError("Scores of arcs are not finite, so no tree is best: the parser's training has diverged.")
    # Per word only differences count; numbers near 0 keep their digits when the root's are lowered.
    matrix[1:] -= matrix[1:].max(1, keepdims=True)
    matrix[1:, 0] += (n + 1) * (matrix[1:].min() - 1)
    np.fill_diagonal(matrix, -np.inf)
    return _best_heads(matrix)[1:]


def _best_heads(scores: np.ndarray) -> np.ndarray:
    """The heads of the best tree from node 0, whose own head is 0; `scores` (nodes, nodes) are of [dependent, head]."""
    heads = scores.argmax(1)
    heads[0] = 0
    cycle = _cycle(heads)
    if not cycle.size:
        return heads
    outside = np.delete(np.arange(len(heads)), cycle)
    # In the smaller problem the cycle is the last node.
    gains = scores[np.ix_(cycle, outside)] - scores[cycle, heads[cycle]][:, None]
    entered = cycle[gains.argmax(0)]
    left_from = cycle[scores[np.ix_(outside, cycle)].argmax(1)]
    smaller = np.full((len(outside) + 1,) * 2, -np.inf)
    smaller[:-1, :-1] = scores[np.ix_(outside, outside)]
    smaller[-1, :-1] = gains.max(0)
    smaller[:-1, -1] = scores[outside, left_from]
    solved = _best_heads(smaller)
    heads[outside] = np.where(solved[:-1] < len(outside), np.append(outside, 0)[solved[:-1]], left_from)
    heads[entered[solved[-1]]] = outside[solved[-1]]
    heads[0] = 0
    return heads


def _cycle(heads: np.ndarray) -> np.ndarray:
    """The nodes of one cycle that does not hold node 0; empty where there is none."""
    parents, reached = heads.tolist(), {0}
    for start in range(1, len(parents)):
        path, node = [], start
        while node not in reached:
            reached.add(node)
            path.append(node)
            node = parents[node]
        if node in path:
            return np.array(path[path.index(node) :])
    return np.array([], dtype=int)
