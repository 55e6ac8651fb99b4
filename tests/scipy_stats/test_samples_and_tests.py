"""Statistics and tests of `cr.scipy.stats`: SciPy's values, derivatives in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_stats = pytest.importorskip("scipy.stats")

RNG = np.random.default_rng(8)
X, Y = RNG.uniform(0.5, 3.0, (5, 3)), RNG.uniform(0.5, 3.0, (5, 3))
Z = RNG.uniform(0.5, 3.0, (6, 3))
U, V, W = RNG.normal(size=7), RNG.normal(size=5), RNG.uniform(0.2, 1.0, 7)

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[(name, (X,), {}) for name in (
        "gmean", "hmean", "skew", "kurtosis", "sem", "variation", "zscore", "gzscore", "gstd",
        "entropy", "moment",
    )],
    *[(name, (X,), {"axis": axis}) for axis in (1, None) for name in (
        "gmean", "hmean", "skew", "kurtosis", "sem", "variation", "zscore", "entropy",
    )],
    *[(name, (X,), {"keepdims": True, "axis": 1}) for name in ("gmean", "skew", "sem", "entropy")],
    ("skew", (X,), {"axis": (0, 1)}), ("skew", (X,), {"bias": False}),
    ("kurtosis", (X,), {"bias": False}), ("kurtosis", (X,), {"fisher": False}),
    ("gmean", (X,), {"weights": Y}), ("hmean", (X,), {"weights": Y}),
    ("gmean", (X,), {"weights": W[:3], "axis": 1}), ("pmean", (X, 3), {}),
    ("pmean", (X, 1.5), {"weights": Y}), ("pmean", (X, 0), {}),
    ("moment", (X, 3), {}), ("moment", (X, 2), {"center": 0.3}), ("moment", (X, [1, 2, 3]), {}),
    ("moment", (X, 0), {}), ("trim_mean", (X, 0.25), {}), ("trim_mean", (X, 0.0), {"axis": None}),
    ("variation", (X,), {"ddof": 1}), ("sem", (X,), {"ddof": 0}), ("zmap", (X, Y), {"ddof": 1}),
    ("entropy", (X, Y), {}), ("entropy", (X, Y), {"base": 2, "axis": 1}),
    ("wasserstein_distance", (U, V), {}), ("wasserstein_distance", (U, V, W), {}),
    ("energy_distance", (U, V), {}), ("energy_distance", (U, V, W), {}),
    ("boxcox", (X[:, 0], 0.4), {}), ("boxcox_llf", (0.4, X), {}), ("boxcox_llf", (0.0, X), {}),
    ("boxcox_llf", (-2e3, X), {}), ("boxcox_llf", (900.0, 10 * X), {}),
    ("yeojohnson", (U, 0.4), {}), ("yeojohnson_llf", (0.4, U), {}),
    *[("differential_entropy", (U,), {"method": m}) for m in ("vasicek", "van es", "ebrahimi",
                                                             "correa", "auto")],
    ("differential_entropy", (X,), {"window_length": 2, "base": 2}),
    # tests: statistic and p-value
    *[("ttest_1samp", (X, 1.2), {"alternative": a}) for a in ("two-sided", "less", "greater")],
    ("ttest_1samp", (X, 1.2), {"axis": None}), ("ttest_1samp", (X, 1.2), {"keepdims": True}),
    ("ttest_rel", (X, Y), {}), ("ttest_ind", (X, Z), {}), ("ttest_ind", (X, Z), {"axis": None}),
    ("ttest_ind", (X, Z), {"equal_var": False, "alternative": "less"}),
    ("ttest_ind_from_stats", (1.0, 0.4, 10, 1.4, 0.7, 13), {}),
    ("ttest_ind_from_stats", (1.0, 0.4, 10, 1.4, 0.7, 13), {"equal_var": False}),
    *[("pearsonr", (U, U[::-1] + W), {"alternative": a}) for a in ("two-sided", "less", "greater")],
    ("pearsonr", (X, Y), {"axis": 0}), ("linregress", (U, W), {}),
    ("linregress", (U, W), {"alternative": "less"}),
    ("f_oneway", (X, Y, Z), {}), ("f_oneway", (X, Y, Z), {"equal_var": False}),
    ("bartlett", (X, Y, Z), {}), ("chisquare", (X,), {}), ("chisquare", (X,), {"ddof": 1}),
    ("chisquare", (W, W[::-1]), {}), ("jarque_bera", (U,), {}),
    *[("power_divergence", (X,), {"lambda_": p}) for p in ("log-likelihood", "neyman",
      "mod-log-likelihood", "freeman-tukey", "cressie-read", 3.0)],
]  # fmt: skip


def parts_of(found: Any) -> list[Any]:
    if not isinstance(found, tuple):
        return [found]
    extra = [getattr(found, name, None) for name in ("df", "intercept_stderr")]
    return [*found, *[part for part in extra if part is not None]]


Parts = list[Any]


def data_of(name: str, args: tuple[Any, ...]) -> list[int]:
    """Return the numbers of the arguments that are differentiated."""
    found = [i for i, value in enumerate(args) if isinstance(value, np.ndarray | float)]
    return found[:1] if name == "trim_mean" else found


def statistic_of(name: str, args: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """Return the statistic as a function of its data, with a list of all parts of the result."""
    ours = getattr(cr.scipy.stats, name)

    def statistic(*moving: Any) -> Parts:
        full = list(args)
        for i, value in zip(data_of(name, args), moving, strict=True):
            full[i] = value
        return parts_of(ours(*full, **settings))

    return statistic


def total_of(statistic: Any) -> Any:
    return lambda *xs: sum(((k + 1) * part).sum() for k, part in enumerate(statistic(*xs)))


IDS = [f"{case[0]}-{i}" for i, case in enumerate(CASES)]


@pytest.mark.parametrize(
    ("name", "args", "settings"),
    [
        case if i % 2 == 0 or not case[2] else pytest.param(*case, marks=pytest.mark.thorough)
        for i, case in enumerate(CASES)
    ],
    ids=IDS,
)
def test_values_and_both_modes(name: str, args: tuple[Any, ...], settings: dict[str, Any]) -> None:
    wanted = getattr(scipy_stats, name)(*args, **settings)
    extra = [getattr(wanted, n, None) for n in ("df", "intercept_stderr")]
    expected = [*(wanted if isinstance(wanted, tuple) or hasattr(wanted, "pvalue") else [wanted])]
    expected += [part for part in extra if part is not None]
    statistic = statistic_of(name, args, settings)
    data = data_of(name, args)
    tensors = [cr.tensor(args[i], dtype=cr.float64, requires_grad=True) for i in data]
    found = statistic(*tensors)
    assert len(found) == len(expected)
    for part, value in zip(found, expected, strict=True):
        np.testing.assert_allclose(part.detach().numpy(), value, 1e-11, 1e-13)
        assert part.shape == np.shape(value)
    if name == "chisquare" and len(args) > 1:  # whose sums have to agree
        ours, (first, second) = cr.scipy.stats.chisquare, tensors
        assert cr.gradcheck(
            lambda x: ours(x, second / second.sum() * x.sum()).pvalue, first, fast_mode=True
        )
        return
    assert cr.gradcheck(total_of(statistic), tensors, check_forward_ad=True, fast_mode=True)
    if not any(isinstance(value, np.ndarray) for value in settings.values()):
        narrow = statistic(*[t.detach().to(cr.float32) for t in tensors])
        assert {str(part.dtype) for part in narrow} == {"float32"}


@pytest.mark.parametrize(
    ("name", "args", "settings"),
    [
        case if i % 5 == 0 else pytest.param(*case, marks=pytest.mark.thorough)
        for i, case in enumerate(CASES)
    ],
    ids=IDS,
)
def test_second_derivatives_compiled_and_mapped(
    name: str, args: tuple[Any, ...], settings: dict[str, Any]
) -> None:
    if name == "chisquare" and len(args) > 1:
        pytest.skip("sums of both have to agree")
    data, total = data_of(name, args), total_of(statistic_of(name, args, settings))
    tensors = [cr.tensor(args[i], dtype=cr.float64, requires_grad=True) for i in data]
    assert cr.gradgradcheck(total, tensors, rtol=1e-3, atol=1e-4, fast_mode=True)
    wanted = total(*tensors).item()
    np.testing.assert_allclose(cr.compile(total)(*tensors).item(), wanted, 1e-10, 1e-13)
    two = cr.vmap(lambda *xs: total(*xs))(*[np.stack([args[i]] * 2) for i in data])
    np.testing.assert_allclose(two, wanted, 1e-10, 1e-13)


def test_results_have_scipys_names_and_classes() -> None:
    found = cr.scipy.stats.ttest_1samp(cr.tensor(X), 1.0)
    t, p = found
    assert (found.statistic is t, found.pvalue is p, found.df.tolist()) == (True, True, [4.0] * 3)
    line = cr.scipy.stats.linregress(cr.tensor(U), W)
    assert line.slope.item() == pytest.approx(scipy_stats.linregress(U, W).slope)
    assert type(cr.scipy.stats.zscore(X)) is np.ndarray
    seen: list[Any] = []
    cr.grad(lambda x: seen.append(cr.scipy.stats.ttest_1samp(x, 1.0)) or seen[0].pvalue.sum())(X)
    assert {type(part) for part in (*seen[0], seen[0].df)} == {cr.numpy.ndarray}
    assert type(cr.grad(lambda x: cr.scipy.stats.skew(x).sum())(X)) is np.ndarray


def test_samples_far_from_zero_or_tiny() -> None:
    """Squares of them overflow, underflow or cancel, in SciPy as here if nothing is done."""
    stats = cr.scipy.stats
    for scale in (1e-160, 1e160):
        found = stats.pearsonr(cr.tensor(U * scale), U[::-1] + W)
        assert found.statistic.item() == pytest.approx(scipy_stats.pearsonr(U, U[::-1] + W)[0])
    groups = [X[:, 0] + 1e12, X[:, 1] + 1e12]
    found = stats.f_oneway(*map(cr.tensor, groups))
    assert found.statistic.item() == pytest.approx(scipy_stats.f_oneway(*groups).statistic, 1e-9)
    endless = stats.ttest_1samp(cr.tensor([1.0, 2.0, np.inf]), 0.0)
    assert np.isnan(endless.statistic.item())
    level = stats.linregress(cr.tensor([0.0, 1.0, 2.0]), [3.0, 3.0, 3.0])
    assert (level.rvalue.item(), level.pvalue.item()) == (0.0, 1.0)


def test_constant_data_gives_nan_as_scipys() -> None:
    constant = cr.tensor([2.0, 2.0, 2.0], dtype=cr.float64)
    for name in ("skew", "kurtosis", "zscore"):
        assert np.isnan(getattr(cr.scipy.stats, name)(constant).numpy()).all()


def test_what_sorts_or_counts_has_no_derivative() -> None:
    stats, x = cr.scipy.stats, cr.tensor(U, requires_grad=True)
    assert stats.spearmanr(cr.tensor(U), W[:7]).statistic == scipy_stats.spearmanr(U, W).statistic
    for name in ("rankdata", "mode", "boxcox_normmax"):
        with pytest.raises(
            cr.AutogradError, match=rf"scipy.stats.{name} has no derivative rule in chainrule: it "
        ):
            getattr(stats, name)(x)


def test_wrong_calls_say_how_they_are_right() -> None:
    stats, x = cr.scipy.stats, cr.tensor(U)
    with pytest.raises(ValueError, match="contains nan"):
        stats.skew(cr.tensor([1.0, np.nan]), nan_policy="raise")
    with pytest.raises(cr.ArgumentError, match="skew of tensors takes nan_policy 'propagate' or"):
        stats.skew(x, nan_policy="omit")
    assert np.isnan(stats.skew(cr.tensor([1.0, np.nan, 2.0])).item())
    with pytest.raises(TypeError, match="boxcox of tensors takes no alpha"):
        stats.boxcox(x, alpha=0.1)
    with pytest.raises(cr.ArgumentError, match="ttest_ind of tensors takes neither trim nor"):
        stats.ttest_ind(x, V, trim=0.1)
    with pytest.raises(ValueError, match="must equal 1"):
        stats.ttest_1samp(cr.tensor(X), np.ones((5, 3)))
    with pytest.raises(cr.ArgumentError, match="pearsonr of tensors takes no method"):
        stats.pearsonr(x, W, method=scipy_stats.PermutationMethod())
    with pytest.raises(cr.ShapeError, match=r"pearsonr: expected samples of one length.* 7 and 5"):
        stats.pearsonr(x, V)
    with pytest.raises(cr.ArgumentError, match="linregress of tensors takes neither nan_policy"):
        stats.linregress(x, W, keepdims=True)
    with pytest.raises(ValueError, match="all x values are identical"):
        stats.linregress(0 * x, W)
    with pytest.raises(TypeError, match="f_oneway: expected at least two samples, got 1"):
        stats.f_oneway(x)
    with pytest.raises(ValueError, match="must agree with the sum"):
        stats.chisquare(cr.tensor(W), W + 1)
    with pytest.raises(ValueError, match="invalid string for lambda_: 'gauss'"):
        stats.power_divergence(cr.tensor(W), lambda_="gauss")
    with pytest.raises(ValueError, match="`alternative` must be"):
        stats.ttest_1samp(x, 0.0, alternative="bigger")
    with pytest.raises(ValueError, match="Proportion too big"):
        stats.trim_mean(x, 0.6)
    with pytest.raises(ValueError, match="Window length"):
        stats.differential_entropy(x, window_length=9)
    with pytest.raises(ValueError, match="`base` must be a positive"):
        stats.entropy(cr.tensor(W), base=-2)
    with pytest.raises(cr.ShapeError, match=r"as many weights as values, got \[5\] and \[7\]"):
        stats.wasserstein_distance(x, V, V)
    with pytest.raises(ValueError, match="`order` must be integral"):
        stats.moment(x, 1.5)
