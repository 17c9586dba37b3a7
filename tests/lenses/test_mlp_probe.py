import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from fivelenses.lenses import mlp_probe
from fivelenses.lenses.mlp_probe import Configuration, fit_grid, grid


def clouds(seed, n=300, d=12, classes=5, apart=1.0):
    """Rows around a centre for each class, in single precision, as encoders give them."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    y[:classes] = np.arange(classes)
    x = apart * random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    return x.astype(np.float32), y


def crossing(seed, n=400):
    """Two classes that no line separates: whether the signs of two features agree."""
    x = np.random.default_rng(seed).standard_normal((n, 2)).astype(np.float32)
    return x, x[:, 0] * x[:, 1] > 0


X, Y = clouds(0, 40, d=3, classes=3)
ONE = [Configuration((4, 4), 0.1)]


@pytest.mark.parametrize("n", [60, 430])
def test_a_probe_is_the_papers_classifier(n):
    x, y = clouds(1, n, classes=3)
    result = fit_grid(x, y, x, y, [Configuration((16, 32), 1.0)], [7], max_epochs=3)
    settings = dict(solver="adam", learning_rate_init=1e-3, batch_size=min(200, n), tol=1e-4, n_iter_no_change=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = MLPClassifier((16, 32), activation="relu", alpha=1.0, max_iter=3, random_state=7, **settings)
        expected.fit(x, y)
    assert (result.right == (expected.predict(x) == y)).all()


def test_a_probe_learns_what_no_line_separates_and_no_warning_is_shown(recwarn):
    x, y = crossing(0)
    x_test, y_test = crossing(1)
    result = fit_grid(x, y, x_test, y_test, [Configuration((32, 32), 1e-4)], [0], max_epochs=200)
    assert result.mean > 0.93 and math.isnan(result.deviation) and not recwarn.list
    assert LogisticRegression().fit(x, y).score(x_test, y_test) < 0.65


def test_one_seed_gives_one_result_and_inputs_are_left_alone():
    before = X.copy(), Y.copy()
    first = fit_grid(X, Y, X, Y, ONE, [0, 0, 1], max_epochs=5)
    assert (first.right[0] == first.right[1]).all() and (first.right[0] != first.right[2]).any()
    assert (before[0] == X).all() and (before[1] == Y).all()
    tensor = torch.from_numpy(X).requires_grad_()
    again = fit_grid(tensor, torch.from_numpy(Y), X.astype(float), Y, ONE, [0, 0, 1], max_epochs=5)
    assert (again.right == first.right).all()


def test_a_label_that_training_does_not_hold_is_an_error():
    known = fit_grid(X, Y, X, Y, ONE, [0], max_epochs=50).mean
    twice = np.where(np.arange(80) % 2, 99, Y.repeat(2))
    assert known > 0
    assert fit_grid(X, Y, X.repeat(2, 0), twice, ONE, [0], max_epochs=50).mean == pytest.approx(known / 2)


def test_a_grid_is_selected_on_withheld_rows_and_run_from_every_seed(monkeypatch):
    x, y = crossing(0, 300)
    calls = []
    whole = mlp_probe._fitted
    monkeypatch.setattr(mlp_probe, "_fitted", lambda *given: calls.append(given) or whole(*given))
    assert len(grid()) == 128 and grid()[0] == Configuration((32, 32), 1e-7)
    # The first gives up every weight; the second can learn it.
    probes = grid([16], [1e4, 1e-4])
    result = fit_grid(x[:200], y[:200], x[200:], y[200:], probes, [3, 4], max_epochs=200)
    assert [len(given[0][0]) for given in calls] == [180, 200]
    assert result.selected == Configuration((16, 16), 1e-4)
    alone = fit_grid(x[:200], y[:200], x[200:], y[200:], [result.selected], [4], max_epochs=200)
    assert (result.right[1] == alone.right[0]).all()
    accuracies = result.right.mean(1)
    assert result.mean == pytest.approx(accuracies.mean()) and result.mean > 0.85
    assert result.deviation == pytest.approx(accuracies.std(ddof=1))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"x": np.where(np.arange(40)[:, None] == 3, np.nan, X)}, "x holds NaN or infinity .* first in row 3"),
        ({"x_test": np.where(X[9] == X, 1e300, X.astype(float))}, "x_test holds NaN or infinity .* first in row 9"),
        ({"y": np.zeros(40)}, "y holds 1 class in 40 rows"),
        ({"x": X[:, 0]}, r"x has shape \(40,\) of .*, not \(rows, features\)"),
        ({"x": X.astype(int)}, "of torch.int64, not"),
        ({"x": X[:2], "y": Y[:2], "configurations": ONE * 2}, "leaves no two classes"),
        ({"configurations": [Configuration((4, 4), 3e38)], "max_epochs": 9}, r"alpha=3e\+38\) diverged"),
    ],
)
def test_rows_that_cannot_be_probed_and_what_cannot_be_trained_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        fit_grid(**({"x": X, "y": Y, "x_test": X, "y_test": Y, "configurations": ONE} | changes))
