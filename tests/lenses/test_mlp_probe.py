import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from fivelenses.lenses import mlp_probe, perceptrons
from fivelenses.lenses.mlp_probe import Configuration, fit, fit_grid, grid


def clouds(seed, n=300, d=12, classes=5, apart=1.0):
    """Rows around a centre for each class, in single precision, as encoders give them."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    y[:classes] = np.arange(classes)
    x = apart * random.standard_normal((classes, d))[y] + random.standard_normal((n, d))
    return x.astype(np.float32), y


def crossing(seed, n=400):
    """Two classes that no line tells apart: whether the signs of two features agree."""
    x = np.random.default_rng(seed).standard_normal((n, 2)).astype(np.float32)
    return x, x[:, 0] * x[:, 1] > 0


def scikit_learn(x, y, configuration, max_epochs=1000, batch_size=200):
    model = MLPClassifier(
        configuration.hidden,
        alpha=configuration.alpha,
        batch_size=min(batch_size, len(x)),
        max_iter=max_epochs,
        random_state=configuration.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(x, y)


def loss_of(parameters, x, y, alpha):
    """The loss as the documentation writes it, through autograd's own functions."""
    w1, b1, w2, b2, w3, b3 = parameters
    logits = torch.relu(torch.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3
    if logits.shape[1] == 1:
        fit_of_labels = torch.nn.functional.binary_cross_entropy_with_logits(logits[:, 0], y.to(logits.dtype))
    else:
        fit_of_labels = torch.nn.functional.cross_entropy(logits, y)
    return fit_of_labels + alpha / 2 * sum(w.square().sum() for w in (w1, w2, w3)) / len(x)


def random_parameters(random, k, d, first, second, outputs):
    shapes = [(d, first), (1, first), (first, second), (1, second), (second, outputs), (1, outputs)]
    return [torch.from_numpy(random.standard_normal((k, *shape), dtype=np.float32) / 2) for shape in shapes]


seeds = st.integers(0, 2**31)
few_units = st.integers(1, 9)


@given(seeds, few_units, few_units, st.integers(2, 5), st.integers(1, 7))
@settings(deadline=None, max_examples=25)
def test_gradients_and_loss_are_those_of_autograd(seed, first, second, classes, m):
    random = np.random.default_rng(seed)
    outputs = 1 if classes == 2 else classes
    parameters = random_parameters(random, 3, 4, first, second, outputs)
    x = torch.from_numpy(random.standard_normal((m, 4), dtype=np.float32))
    y = torch.from_numpy(random.integers(0, classes, m))
    alphas = torch.tensor([0.0, 0.3, 20.0]).reshape(3, 1, 1)
    gradients = [torch.full_like(values, torch.nan) for values in parameters]
    losses = perceptrons._gradients(parameters, x[None], y[None], alphas, gradients) / m
    for probe in range(3):
        own = [values[probe].double().requires_grad_() for values in parameters]
        loss = loss_of(own, x.double(), y, alphas[probe].item())
        loss.backward()
        assert losses[probe].item() == pytest.approx(loss.item(), rel=1e-4, abs=1e-5)
        for written, expected in zip(gradients, own, strict=True):
            torch.testing.assert_close(written[probe].double(), expected.grad, rtol=1e-4, atol=1e-5)


def test_a_network_done_by_hand():
    # One row x = (1, 2), two units each: hidden (1 + 4 - 1, relu(-3)) = (4, 0), then (4·0.5, relu(-4)) = (2, 0),
    # then the logit of the second of two classes 2·1 - 2 = 0, so that p = 1/2 whatever the label.
    parameters = [
        torch.tensor(values)[None]
        for values in (
            [[1.0, -1.0], [2.0, -1.0]],
            [[-1.0, 0.0]],
            [[0.5, -1.0], [7.0, 7.0]],
            [[0.0, 0.0]],
            [[1.0], [3.0]],
            [[-2.0]],
        )
    ]
    gradients = [torch.empty_like(values) for values in parameters]
    x, y, alphas = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[1]]), torch.tensor([[[0.1]]])
    first, second, logit = perceptrons._forward(parameters, x)
    assert (first.tolist(), second.tolist(), logit.tolist()) == ([[[4.0, 0.0]]], [[[2.0, 0.0]]], [[[0.0]]])
    total = perceptrons._gradients(parameters, x, y, alphas, gradients)
    squares = (1 + 1 + 4 + 1) + (0.25 + 1 + 49 + 49) + (1 + 9)
    assert total.item() == pytest.approx(math.log(2) + 0.05 * squares, rel=1e-6)
    # The error at the logit is 1/2 - 1; it reaches the living units only, and weights also shrink by 0.1 of themselves.
    expected = [
        [[-0.25 + 0.1, -0.1], [-0.5 + 0.2, -0.1]],
        [[-0.25, 0.0]],
        [[-2.0 + 0.05, -0.1], [0.7, 0.7]],
        [[-0.5, 0.0]],
        [[-1.0 + 0.1], [0.3]],
        [[-0.5]],
    ]
    for written, by_hand in zip(gradients, expected, strict=True):
        torch.testing.assert_close(written[0], torch.tensor(by_hand))


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("n", [60, 430])
def test_the_first_epochs_are_those_of_scikit_learn(classes, n):
    x, y = clouds(1, n, classes=classes)
    for configuration in (Configuration((8, 5), 1e-3, 0), Configuration((16, 32), 1.0, 7)):
        for epochs in (1, 2, 12):
            expected = scikit_learn(x, y, configuration, epochs)
            ours = fit(x, y, x, y, [configuration], max_epochs=epochs).iloc[0]
            assert ours.loss == pytest.approx(expected.loss_, rel=1e-5)
            assert ours.training_accuracy == pytest.approx(expected.score(x, y), abs=1.5 / n)


def test_one_epoch_leaves_the_weights_of_scikit_learn(monkeypatch):
    x, y = clouds(2, 230)
    kept = []
    measure = perceptrons._right
    monkeypatch.setattr(
        perceptrons, "_right", lambda parameters, *rows: kept.append(parameters) or measure(parameters, *rows)
    )
    configuration = Configuration((9, 6), 0.5, 3)
    fit(x, y, x, y, [configuration], max_epochs=3)
    expected = scikit_learn(x, y, configuration, 3)
    for layer in range(3):
        np.testing.assert_allclose(kept[0][2 * layer][0], expected.coefs_[layer], atol=1e-5)
        np.testing.assert_allclose(kept[0][2 * layer + 1][0, 0], expected.intercepts_[layer], atol=1e-5)


def test_whole_fits_agree_with_scikit_learn_within_its_spread():
    x, y = clouds(3, 500, d=16, classes=4, apart=0.9)
    train, test = slice(0, 100), slice(100, 500)
    configurations = [Configuration((24, 16), 1e-3, seed) for seed in range(5)]
    # Small batches take more steps in an epoch, and so fewer epochs.
    ours = fit(x[train], y[train], x[test], y[test], configurations, batch_size=25)
    theirs = [scikit_learn(x[train], y[train], one, batch_size=25) for one in configurations]
    accuracies = np.array([model.score(x[test], y[test]) for model in theirs])
    epochs = np.array([model.n_iter_ for model in theirs])
    assert ours.converged.all()
    for column, expected, slack in (("test_accuracy", accuracies, 0.005), ("epochs", epochs, 3)):
        values = ours[column].to_numpy()
        error = math.hypot(values.std(ddof=1), expected.std(ddof=1)) / math.sqrt(5)
        assert abs(values.mean() - expected.mean()) <= 3 * error + slack


@given(st.lists(st.sampled_from([1.0, 0.99995, 0.9999, 0.9998, 0.5, 0.50005, 0.4]), min_size=1, max_size=60))
@settings(deadline=None, max_examples=60)
def test_training_ends_where_scikit_learn_ends_it(losses):
    model = MLPClassifier(tol=perceptrons.TOLERANCE, early_stopping=False)
    model.loss_curve_, model.best_loss_, model._no_improvement_count = [], np.inf, 0
    best, waited = np.array([np.inf]), np.array([0])
    for loss in losses:
        model.loss_curve_.append(loss)
        model._update_no_improvement_count(False, None, None, None)
        best, waited = perceptrons._epochs_without_improvement(np.array([loss]), best, waited)
        assert (best[0], waited[0]) == (model.best_loss_, model._no_improvement_count)


def test_patience_ends_a_probe_in_the_eleventh_flat_epoch(monkeypatch):
    script = iter([5.0, 3.0] + [3.0] * 20)
    monkeypatch.setattr(
        perceptrons,
        "_gradients",
        lambda p, x, y, a, g: [v.zero_() for v in g] and torch.tensor([next(script)]) * x.shape[1],
    )
    x, y = clouds(0, 20)
    row = fit(x, y, x, y, [Configuration((4, 4), 0.0)]).iloc[0]
    assert (row.epochs, row.loss, row.converged) == (13, 3.0, True)


def test_wider_neighbours_change_no_probe():
    x, y = clouds(4, 260)
    configurations = [Configuration((5, 9), 1e-2, 0), Configuration((20, 3), 1.0, 1), Configuration((12, 30), 1e-5, 1)]
    together = fit(x, y, x, y, configurations, max_epochs=15, padded=True)
    apart = fit(x, y, x, y, configurations, max_epochs=15, padded=False)
    np.testing.assert_allclose(together.loss, apart.loss, rtol=1e-4)
    np.testing.assert_allclose(together.test_accuracy, apart.test_accuracy, atol=0.01)


def test_padded_units_stay_zero(monkeypatch):
    kept = []
    measure = perceptrons._right
    monkeypatch.setattr(
        perceptrons, "_right", lambda parameters, *rows: kept.append(parameters) or measure(parameters, *rows)
    )
    x, y = clouds(5, 100)
    fit(x, y, x, y, [Configuration((3, 2), 1.0), Configuration((6, 8), 1.0)], max_epochs=10, padded=True)
    w1, b1, w2, b2, w3, _ = (values[0] for values in kept[0])
    for padding in (w1[:, 3:], b1[:, 3:], w2[3:], w2[:, 2:], b2[:, 2:], w3[2:]):
        assert padding.numel() and (padding == 0).all()
    assert (w1[:, :3] != 0).all() and (w2[:3, :2] != 0).all()


def test_probes_that_stop_leave_the_others_as_they_were(monkeypatch):
    monkeypatch.setattr(perceptrons, "TOLERANCE", 0.03)
    x, y = clouds(6, 150, apart=2.0)
    configurations = [Configuration((8, 8), alpha, seed) for alpha, seed in ((1e-4, 0), (30.0, 0), (1.0, 1), (0.1, 2))]
    together = fit(x, y, x, y, configurations, max_epochs=100, batch_size=15)
    assert together.epochs.nunique() > 1
    for place, one in enumerate(configurations):
        alone = fit(x, y, x, y, [one], max_epochs=100, batch_size=15).iloc[0]
        assert together.loss[place] == pytest.approx(alone.loss, rel=1e-3)
        assert abs(together.epochs[place] - alone.epochs) <= 2


def test_little_memory_trains_in_turns_with_the_same_result():
    x, y = clouds(7, 80)
    configurations = [Configuration((6, 6), alpha, seed) for alpha in (1e-3, 1.0) for seed in (0, 1)]
    at_once, in_turns = (fit(x, y, x, y, configurations, max_epochs=10, memory_mb=mb) for mb in (1000, 1e-6))
    np.testing.assert_allclose(at_once.loss, in_turns.loss, rtol=1e-5)
    assert len(mlp_probe._batches(configurations, 12, 5, 80, False, 1000)) == 1
    assert len(mlp_probe._batches(configurations, 12, 5, 80, False, 1e-6)) == 4


def test_a_probe_learns_what_no_line_tells_apart():
    x, y = crossing(0)
    x_test, y_test = crossing(1)
    row = fit(x, y, x_test, y_test, [Configuration((32, 32), 1e-4)]).iloc[0]
    assert row.test_accuracy > 0.95
    assert LogisticRegression().fit(x, y).score(x_test, y_test) < 0.65


def test_random_labels_are_fitted_but_leave_chance_on_other_rows():
    random = np.random.default_rng(0)
    x, y = random.standard_normal((200, 40)), random.integers(0, 4, 200)
    x_test, y_test = random.standard_normal((2000, 40)), random.integers(0, 4, 2000)
    row = fit(x, y, x_test, y_test, [Configuration((64, 32), 1e-5)]).iloc[0]
    assert row.training_accuracy > 0.95
    assert row.test_accuracy == pytest.approx(0.25, abs=0.05)


@given(seeds)
@settings(deadline=None, max_examples=5)
def test_names_of_labels_do_not_matter(seed):
    x, y = clouds(8, 100, classes=4, apart=3.0)
    one = [Configuration((16, 16), 1e-4, seed % 1000)]
    numbered = fit(x, y, x, y, one, max_epochs=20)
    # Other names in the same order are the same classes; in another order they start from other weights.
    same = np.array(["a", "b", "c", "d"])[y]
    assert fit(x, same, x, same, one, max_epochs=20).equals(numbered)
    other = np.random.default_rng(seed).permutation(4)[y]
    renamed = fit(x, other, x, other, one, max_epochs=20, batch_size=10)
    assert renamed.training_accuracy[0] > 0.97


def test_one_seed_gives_one_result_and_inputs_are_left_alone():
    x, y = clouds(9, 100)
    before = x.copy(), y.copy()
    configurations = [Configuration((8, 4), 1e-3, seed) for seed in (0, 0, 1)]
    first, second = (fit(x, y, x, y, configurations, max_epochs=5) for _ in range(2))
    assert first.equals(second)
    assert first.loss[0] == pytest.approx(first.loss[1], rel=1e-6) and first.loss[0] != first.loss[2]
    assert (x == before[0]).all() and (y == before[1]).all()
    tensors = fit(
        torch.from_numpy(x).requires_grad_(), torch.from_numpy(y), x.astype(float), y, configurations, max_epochs=5
    )
    assert tensors.equals(first)


def test_labels_that_training_never_showed_are_wrong_and_a_constant_feature_does_no_harm():
    x, y = clouds(10, 200, classes=3, apart=3.0)
    x = np.column_stack([x, np.ones(200, np.float32)])
    known = fit(x, y, x, y, [Configuration((16, 16), 1e-4)], max_epochs=200).test_accuracy[0]
    half = fit(
        x,
        y,
        np.repeat(x, 2, 0),
        np.where(np.arange(400) % 2, 99, y.repeat(2)),
        [Configuration((16, 16), 1e-4)],
        max_epochs=200,
    )
    assert half.test_accuracy[0] == pytest.approx(known / 2)


def test_the_default_grid_is_16_pairs_of_sizes_by_8_alphas():
    configurations = grid()
    assert len({one.hidden for one in configurations}) == 16
    assert sorted({one.alpha for one in configurations}) == pytest.approx(np.geomspace(1e-7, 1, 8))
    assert len(set(configurations)) == 128


@pytest.mark.parametrize("select_on, rows", [("held-out", 180), ("test", 200)])
def test_a_grid_is_chosen_by_accuracy_and_run_from_every_seed(select_on, rows, monkeypatch):
    x, y = crossing(0, 300)
    calls = []
    whole = mlp_probe._fitted
    monkeypatch.setattr(mlp_probe, "_fitted", lambda *given, **how: calls.append(given) or whole(*given, **how))
    # The first gives up every weight; the second can learn it.
    result = fit_grid(
        x[:200], y[:200], x[200:], y[200:], grid([16], [1e4, 1e-4]), [3, 4, 5], select_on=select_on, max_epochs=300
    )
    assert [len(given[0]) for given in calls] == [rows, 200]
    assert (result.hidden, result.alpha, result.select_on) == ((16, 16), 1e-4, select_on)
    assert result.grid.seed.tolist() == [3, 3] and result.runs.seed.tolist() == [3, 4, 5]
    assert result.mean == pytest.approx(np.mean(result.accuracies)) and result.mean > 0.9
    assert result.deviation == pytest.approx(np.std(result.accuracies, ddof=1))


def test_rows_held_out_keep_the_shares_of_the_labels_and_are_disjoint():
    y = np.repeat([0, 1, 2], [100, 60, 40])
    kept, away = mlp_probe._held_out(y, 0.1, 0)
    assert sorted([*kept, *away]) == list(range(200))
    assert np.bincount(y[away]).tolist() == [10, 6, 4]
    # A label of one row can be in one part only.
    kept, away = mlp_probe._held_out(np.append(y, 3), 0.1, 0)
    assert (len(kept), len(away)) == (180, 21)


X, Y = clouds(0, 40, d=3, classes=3)
ONE = [Configuration((4, 4), 0.1)]


@pytest.mark.parametrize(
    "given, message",
    [
        ((np.where(np.arange(40)[:, None] == 3, np.nan, X), Y, X, Y), "x holds NaN or infinity .* first in row 3"),
        (
            (X, Y, np.where(np.arange(40)[:, None] == 9, 1e300, X.astype(float)), Y),
            "x_test holds NaN or infinity .* first in row 9",
        ),
        ((X, np.where(np.arange(40) == 5, np.nan, Y), X, Y), "y holds NaN or infinity, first in row 5"),
        ((X, np.zeros(40), X, Y), "y holds 1 class in 40 rows"),
        ((X[:1], Y[:1], X, Y), "y holds 1 class in 1 rows"),
        ((X[:0], Y[:0], X, Y), r"x has shape \(0, 3\)"),
        ((X, Y, X[:0], Y[:0]), r"x_test has shape \(0, 3\)"),
        ((X[:, 0], Y, X, Y), r"x has shape \(40,\), not \(rows, features\)"),
        ((X, Y[:-1], X, Y), r"y has shape \(39,\) and x has 40 rows"),
        ((X, Y, X, Y[:, None]), r"y_test has shape \(40, 1\) and x_test has 40 rows"),
        ((X, Y, X[:, :2], Y), "x_test has 2 features and x has 3"),
        ((X.astype(int), Y, X, Y), "x holds torch.int64, not floating-point"),
    ],
)
@pytest.mark.parametrize("probe", [fit, fit_grid])
def test_what_cannot_be_probed_is_refused(probe, given, message):
    with pytest.raises(ValueError, match=message):
        probe(*given, ONE)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: fit(X, Y, X, Y, []), "No configurations"),
        (lambda: fit_grid(X, Y, X, Y, []), "No configurations"),
        (lambda: fit(X, Y, X, Y, ONE, max_epochs=0), "max_epochs = 0"),
        (lambda: fit(X, Y, X, Y, ONE, batch_size=0), "batch_size = 0"),
        (lambda: fit(X, Y, X, Y, [*ONE, Configuration((4, 4), 3e38)]), r"alpha=3e\+38, seed=0\) diverged in epoch 1"),
        (lambda: fit_grid(X, Y, X, Y, ONE, []), "No seeds"),
        (lambda: fit_grid(X, Y, X, Y, ONE, select_on="luck"), "select_on = 'luck'"),
        (lambda: fit_grid(X, Y, X, Y, ONE, held_out=1.0), "held_out = 1.0 is not a share"),
        (lambda: fit_grid(X[:2], Y[:2], X, Y, ONE), "leaves no two classes"),
        (lambda: Configuration((4, 0), 0.1), "A layer.s units = 0"),
        (lambda: Configuration((4,), 0.1), "units of two hidden layers"),
        (lambda: Configuration((4, 4), -1.0), "alpha = -1.0"),
        (lambda: Configuration((4, 4), math.nan), "alpha = nan"),
        (lambda: Configuration((4, 4), 0.1, -1), "seed = -1"),
    ],
)
def test_what_cannot_be_trained_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
