r"""A dependency parser on the words of an encoder: deep biaffine attention, and trees from its scores.

Four linear maps give each word vectors as dependent and as head of an arc (:math:`d_i, h_j`) and of a relation
(:math:`d'_i, h'_j`); j = 0 is the root, which has a vector of its own:

.. math::

    s_{ij} = \tilde d_i^\top U \tilde h_j, \qquad s_{ijr} = \tilde d_i'^\top U_r \tilde h'_j,
    \qquad \tilde x = (x, 1),

where the appended 1 gives the linear terms and the bias. Training minimises the cross-entropy of a word's head plus
that of its relation at the gold head; a parse is the tree with the highest sum of :math:`s_{ij}` among those with one
arc from the root, with the best relation of each arc. Source: Dozat and Manning 2017.

The tree is found by Chu and Liu's and Edmonds' algorithm: every word takes its best head; a cycle of these arcs is
contracted into one node, whose arc from :math:`j` is worth what entering the cycle at its best word gains over the arc
that the word gives up; the smaller problem is solved and the cycle opened at the word that was entered.
Time is :math:`O(n^2)` per contraction, of which there are fewer than :math:`n`. Sources: Chu and Liu 1965; Edmonds
1967; for parsing McDonald et al. 2005.

Shapes: words (batch, words, width), arcs (batch, words, 1 + words), relations (batch, words, 1 + words, relations).
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from torch import nn
from transformers.utils import ModelOutput

from fivelenses.tasks.encoding import IGNORED

# Dozat and Manning's sizes of the arc and the relation vectors, and their dropout of words and vectors.
ARC_SIZE, RELATION_SIZE, DROPOUT = 500, 100, 0.33


@dataclass
class ParserOutput(ModelOutput):
    """The loss, and the scores of arcs (the lowest number where one is impossible) and of their relations."""

    loss: torch.Tensor | None = None
    arcs: torch.Tensor | None = None
    relations: torch.Tensor | None = None


class BiaffineHead(nn.Module):
    """Scores of arcs and of so many relations between words.

    Vectors have the published sizes, but at most twice the words' width for arcs and their width for relations.
    """

    def __init__(self, width: int, relations: int):
        super().__init__()
        arc, relation = min(ARC_SIZE, 2 * width), min(RELATION_SIZE, width)
        self.dropout = nn.Dropout(DROPOUT)
        self.root = nn.Parameter(torch.randn(width))
        self.arc_dependent, self.arc_head = nn.Linear(width, arc), nn.Linear(width, arc)
        self.relation_dependent, self.relation_head = nn.Linear(width, relation), nn.Linear(width, relation)
        self.arc_scores = nn.Parameter(torch.randn(arc + 1, arc + 1) / arc)
        self.relation_scores = nn.Parameter(torch.randn(relations, relation + 1, relation + 1) / relation)

    def forward(self, words: torch.Tensor, present: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores of all arcs and of their relations; `present` (batch, words) is False where there is no word, so that
        nothing can depend on it.
        """
        heads = torch.cat([self.root.expand(len(words), 1, -1), words], dim=1)
        words, heads = self.dropout(words), self.dropout(heads)
        dependents, of_heads = self._vectors(self.arc_dependent, words), self._vectors(self.arc_head, heads)
        arcs = torch.einsum("bdi,ij,bhj->bdh", dependents, self.arc_scores, of_heads)
        dependents, of_heads = self._vectors(self.relation_dependent, words), self._vectors(self.relation_head, heads)
        relations = torch.einsum("bdi,rij,bhj->bdhr", dependents, self.relation_scores, of_heads)
        place = torch.arange(words.shape[1], device=words.device)
        possible = present[:, None, :] & (place[:, None] != place)  # no word is its own head
        possible = nn.functional.pad(possible, (1, 0), value=True)
        return arcs.masked_fill(~possible, torch.finfo(arcs.dtype).min), relations

    def _vectors(self, layer: nn.Linear, words: torch.Tensor) -> torch.Tensor:
        vectors = self.dropout(nn.functional.leaky_relu(layer(words), 0.1))
        return nn.functional.pad(vectors, (0, 1), value=1.0)


def parsing_loss(
    arcs: torch.Tensor, relations: torch.Tensor, heads: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """Cross-entropy of gold heads plus that of relations (labels) at the gold heads, (batch, words), each a mean over
    words; the head is 0 for the root and -100 for words that do not count.

    Example:
        >>> scores = torch.zeros(1, 1, 2), torch.zeros(1, 1, 2, 4)
        >>> round(float(parsing_loss(*scores, torch.tensor([[0]]), torch.tensor([[3]])).exp()), 4)  # 1 of 2, 1 of 4
        8.0
    """
    counted = heads != IGNORED
    of_arcs = nn.functional.cross_entropy(arcs[counted].float(), heads[counted])
    at_gold = relations[counted].gather(1, heads[counted][:, None, None].expand(-1, 1, relations.shape[-1]))[:, 0]
    return of_arcs + nn.functional.cross_entropy(at_gold.float(), labels[counted])


def parse(arcs: np.ndarray, relations: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One sentence's tree and the best relation of each of its arcs.

    Args:
        arcs, relations: a sentence's scores, (words, 1 + words) and (words, 1 + words, relations); those of a diverged
            parser, too, since NaN counts as 0.
        words: (k,) the words that have tokens, counted from 0; the tree is over these.

    Returns:
        (k,) heads, counted from 1 in the whole sentence, and (k,) relations.

    Example:
        >>> parse(np.array([[0.0, 0, 2], [1, 0, 0]]), np.zeros((2, 3, 4)), np.array([0, 1]))
        (array([2, 0]), array([0, 0]))
    """
    places = np.concatenate([[0], words + 1])
    heads = places[spanning_tree(np.nan_to_num(arcs[np.ix_(words, places)].astype(float)))]
    return heads, relations[words, heads].argmax(-1)


def spanning_tree(scores: np.ndarray) -> np.ndarray:
    """The heads of the tree with the highest sum of scores among those with one arc from the root.

    The algorithm alone may give the root several arcs. Here the scores of all the root's arcs are lowered by more than
    the sums of two trees can differ otherwise, so that a second arc from the root costs more than it gains; trees with
    one such arc keep their order.

    Args:
        scores: (words, 1 + words) of each word's heads; column 0 is the root, and a word's own column is not read.

    Example:
        >>> spanning_tree(np.array([[2.0, 0.0, 1.0], [2.0, 1.5, 0.0]]))
        array([0, 1])
    """
    n = len(scores)
    matrix = np.zeros((n + 1, n + 1))
    matrix[1:] = scores
    np.fill_diagonal(matrix, 0.0)
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
    """The nodes of the longest cycle, without node 0; empty where there is none."""
    words = np.arange(1, len(heads))
    arcs = csr_array((np.ones(len(words)), (words, heads[1:])), shape=(len(heads), len(heads)))
    _, component = connected_components(arcs, connection="strong")
    sizes = np.bincount(component)
    return np.flatnonzero(component == sizes.argmax()) if sizes.max() > 1 else np.array([], dtype=int)
