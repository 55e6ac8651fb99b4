"""Every primitive, in every dtype and situation of the conformance table, passes every check.

The last section plants wrong rules, which the checks have to notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import chainrule as cr
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.reverse import BackwardPass
from chainrule.backend import namespace
from chainrule.primitives import TABLE
from chainrule.primitives.primitive import constant, elementwise, general, linear, symmetric
from conformance import CONSTANTS, ROWS, Case, Row, cases_of, checks, situation
from conformance.checks import demand
from conformance.row import REAL
from conformance.rows.elementwise import EXPONENTIAL, TRIGONOMETRIC
from conformance.situations import UNARY
from helpers.parameters import dtypes_in_turn

CASES = [case for row in ROWS for case in cases_of(row)]
DOUBLE = [case for case in CASES if case.dtype in ("float64", "complex128")]
SINGLE = [case for case in CASES if case.dtype in ("float32", "complex64")]
SMOOTH = [case for case in DOUBLE if case.situation.smooth]
# What doesn't depend on the dtype is checked for each situation in one, and for each dtype.
IN_TURN, DOUBLE_IN_TURN, SMOOTH_IN_TURN = (
    [case for chosen in dtypes_in_turn(cases).values() for case in chosen]
    for cases in (CASES, DOUBLE, SMOOTH)
)
CONSTANT_CASES = [case for row in CONSTANTS for case in cases_of(row)]
PRIMITIVES = set(TABLE)  # as they are imported: tests may define more


def each(cases: list[Case]) -> Any:
    """Run a test for each primitive, with the list of its cases; what fails names them."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.row.primitive, []).append(case)
    return pytest.mark.parametrize("cases", groups.values(), ids=groups)


def test_every_primitive_has_a_row() -> None:
    # tests/scipy_special, its neighbours and tests/communicator have those of what is imported late
    others = {name for name in PRIMITIVES if name.startswith(("special_", "scipy_", "comm_"))}
    assert checks.uncovered(PRIMITIVES - others, (*ROWS, *CONSTANTS)) == set()


def test_no_primitive_has_two_rows() -> None:
    names = [row.primitive for row in (*ROWS, *CONSTANTS)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("row", [*ROWS, *CONSTANTS], ids=lambda row: row.primitive)
def test_rows_say_truly_whether_there_is_a_derivative(row: Row) -> None:
    assert row.differentiable == TABLE[row.primitive].differentiable


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.primitive)
def test_rows_cover_memory_layouts_and_empty_inputs(row: Row) -> None:
    names = {situation.name for situation in row.situations}
    assert "non-contiguous" in names
    assert any(name.startswith("size-0") for name in names) or row.primitive == "reshape_copy"


# --- right ----------------------------------------------------------------------------------------


@each([case for case in CASES if case.dtype != "float32"])
def test_the_row_records_its_primitive(cases: list[Case]) -> None:
    demand(checks.check_primitive, cases)


@each([*CASES, *CONSTANT_CASES])
def test_value_is_numpys(cases: list[Case]) -> None:
    demand(checks.check_value, cases)


@each([case for case in DOUBLE if case.situation in case.row.situations[:1]])
def test_taylor_mode_agrees_with_nested_forward_mode(cases: list[Case]) -> None:
    demand(checks.check_taylor, cases)


@pytest.mark.thorough
@each([case for case in DOUBLE if case.situation not in case.row.situations[:1]])
def test_taylor_mode_agrees_in_the_other_situations(cases: list[Case]) -> None:
    demand(checks.check_taylor, cases)


@each(SMOOTH)
def test_vjp_agrees_with_differences(cases: list[Case]) -> None:
    demand(checks.check_vjp, cases)


@each(SMOOTH)
def test_jvp_agrees_with_differences(cases: list[Case]) -> None:
    demand(checks.check_jvp, cases)


@each(IN_TURN)
def test_both_modes_agree(cases: list[Case]) -> None:
    demand(checks.check_pairing, cases)


@each(DOUBLE)
def test_s74_second_order_is_the_same_in_three_modes(cases: list[Case]) -> None:
    demand(checks.check_second_order, cases)


@each([case for case in SMOOTH if case.dtype == "float64"])
def test_third_order_agrees_with_differences(cases: list[Case]) -> None:
    demand(checks.check_third_order, cases)


@each(SMOOTH_IN_TURN)
def test_forward_mode_nests(cases: list[Case]) -> None:
    demand(checks.check_forward_over_forward, cases)


@each(DOUBLE_IN_TURN)
def test_the_recorded_pass_is_linear_in_the_cotangent(cases: list[Case]) -> None:
    demand(checks.check_cotangent_derivative, cases)


@each([case for case in DOUBLE if len(case.situation.inputs) > 1])
def test_each_input_alone(cases: list[Case]) -> None:
    demand(checks.check_each_input_alone, cases)


@each([case for case in DOUBLE if TABLE[case.row.primitive].multiple])
def test_unused_outputs_count_as_zero(cases: list[Case]) -> None:
    demand(checks.check_unused_outputs, cases)


@each(CONSTANT_CASES)
def test_s63_steps_have_derivative_zero(cases: list[Case]) -> None:
    demand(checks.check_constant, cases)


# --- dtypes and memory ----------------------------------------------------------------------------


@each(IN_TURN)
def test_s65_dtypes_are_kept(cases: list[Case]) -> None:
    demand(checks.check_dtypes, cases)


_PROMOTING = (
    *("add", "subtract", "multiply", "divide", "pow", "maximum", "minimum", "where"),
    *("matmul", "concat", "stack"),
)


@each([c for c in DOUBLE if c.row.primitive in _PROMOTING])
def test_s65_promoted_inputs_get_gradients_of_their_own_dtype(cases: list[Case]) -> None:
    demand(checks.check_promotion, [case for case in cases if len(case.arrays()) > 1])


@each([case for case in SINGLE if case.situation.dtypes is None])
def test_single_precision_is_double_precision_rounded(cases: list[Case]) -> None:
    demand(checks.check_single_precision, cases)


@each(IN_TURN)
def test_inputs_are_left_alone_and_may_be_read_only(cases: list[Case]) -> None:
    demand(checks.check_untouched, cases)


@each(DOUBLE_IN_TURN)
def test_memory_layout_makes_no_difference(cases: list[Case]) -> None:
    demand(checks.check_contiguity, cases)


# --- beside other libraries -----------------------------------------------------------------------


@each([case for case in DOUBLE if case.row.spelling("torch") and case.situation.peer])
def test_beside_pytorch(cases: list[Case]) -> None:
    demand(checks.check_torch, cases, pytest.importorskip("torch"))


@each([c for c in CONSTANT_CASES if c.dtype != "float32" and c.row.spelling("torch")])
def test_steps_beside_pytorch(cases: list[Case]) -> None:
    demand(checks.check_torch_value, cases, pytest.importorskip("torch"))


_NOT_IN_JAX = (
    # whose rows are written with SciPy's functions, or write into arrays
    *("erf", "erfc", "erfcx", "erfi", "erfinv", "dawsn", "ndtri", "log_ndtr", "lgamma", "gamma"),
    *("betaln", "beta", "gammainc", "gammaincc", "betainc", "zeta", "expi", "exp1", "logit"),
    *("gammainc_moment", "betainc_moment"),
    *("entr", "rel_entr", "gelu", "maximum_at", "minimum_at", "max_pool", "pool_pick"),
    *("pool_place", "convolve", "convolve_input", "convolve_weight", "lu"),
    # which JAX doesn't differentiate, so or at all
    *("nextafter", "matrix_exp", "eig"),
)
_HALVES_IN_JAX = (
    "clamp_min",
    "clamp_max",
    "fmax",
    "fmin",
)  # where both are equal: PyTorch's are ours


@each(
    [
        case
        for case in DOUBLE_IN_TURN
        if case.row.primitive not in _NOT_IN_JAX
        and case.situation.name in ("plain", "ties", "axis")
        and not (case.row.primitive in _HALVES_IN_JAX and case.situation.name == "ties")
    ]
)
def test_beside_jax(cases: list[Case]) -> None:
    demand(checks.check_jax, cases, pytest.importorskip("jax"))


# --- the checks themselves: a planted mistake is noticed ------------------------------------------


@pytest.fixture
def plant() -> Iterator[Callable[..., Callable[..., Case]]]:
    """Return a function that adds a primitive for this test, and returns cases of its row."""
    made: list[str] = []

    def planting(maker: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Case]:
        primitive = maker("planted", *args, **kwargs)
        made.append(primitive.name)
        function = primitive.apply

        def case(numpy: Any, dtype: str = "float64") -> Case:
            spellings = {
                "chainrule": lambda cr, *xs, **settings: function(*xs, **settings),
                "call": numpy,
            }
            inputs = [(2, 3)] * max(len(primitive.inputs), 1)
            row = Row("planted", (situation("plain", *inputs),), ((0.5, 1.5),), (dtype,), spellings)
            return Case(row, row.situations[0], dtype)

        return case

    yield planting
    for name in made:
        TABLE.pop(name)


def fails(check: Callable[..., None], case: Case, *libraries: Any) -> bool:
    try:
        check(case, *libraries)
    except AssertionError:
        return True
    return False


FLAT = (
    "sign",
    "floor",
    "ceil",
    "trunc",
    "round",
    "floor_divide",
    "truncated_quotient",
    "heaviside",
)  # 0, scaled, is 0


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r.primitive not in FLAT], ids=lambda r: r.primitive
)
def test_every_reverse_rule_wrong_by_a_ten_thousandth_is_noticed(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in cases_of(row) if case in SMOOTH)
    assert not fails(checks.check_vjp, case)
    for plan in TABLE[row.primitive]._plans.values():
        monkeypatch.setattr(plan, "vjp", _scaled(plan._compile()))
    assert fails(checks.check_vjp, case)
    assert fails(checks.check_pairing, case)


def _scaled(vjp: Callable[..., Any]) -> Callable[..., Any]:
    def scaled(*arguments: Any) -> Any:
        return tuple(None if g is None else g * 1.0001 for g in vjp(*arguments))

    return scaled


CURVED = (
    *("multiply", "divide", "pow", "square", "reciprocal", "prod", "cumulative_prod", "matmul"),
    *("logsumexp", "softmax", "log_softmax", "contract", "cross", "cdist"),
    *(
        "inv",
        "solve",
        "solve_factored",
        "solve_triangular",
        "pinv",
        "det",
        "cofactor",
        "slogdet",
        "matrix_exp",
    ),
    *("cholesky", "qr", "eigh", "eig", "svd", "p_norm"),
    *[row.primitive for row in (*EXPONENTIAL, *TRIGONOMETRIC)],
)


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r.primitive in CURVED], ids=lambda r: r.primitive
)
def test_every_second_derivative_dropped_is_noticed(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in cases_of(row) if case in SMOOTH)
    as_tensors = PrimitiveNode.as_tensors

    def cut(self: PrimitiveNode, values: Any) -> Any:
        return tuple(
            [
                part.detach() if isinstance(part, cr.Tensor) else part
                for part in as_tensors(self, values)
            ]
        )

    monkeypatch.setattr(PrimitiveNode, "as_tensors", cut)
    assert not fails(checks.check_vjp, case)
    assert fails(checks.check_second_order, case)


def cube(library: Any, x: Any) -> Any:
    return x * x * x


def test_a_right_rule_passes(plant: Any) -> None:
    case = plant(elementwise, lambda xp, x: 3 * x * x, forward=cube)(cube)
    for check in (
        checks.check_primitive,
        checks.check_value,
        checks.check_vjp,
        checks.check_jvp,
        checks.check_pairing,
        checks.check_second_order,
        checks.check_forward_over_forward,
        checks.check_cotangent_derivative,
        checks.check_dtypes,
        checks.check_untouched,
        checks.check_contiguity,
    ):
        check(case)


def test_a_missing_row_is_noticed(plant: Any) -> None:
    plant(elementwise, lambda xp, x: 3 * x * x, forward=cube)
    assert checks.uncovered(TABLE, (*ROWS, *CONSTANTS)) >= {"planted"}


def test_a_row_that_misses_its_primitive_is_noticed() -> None:
    row = Row("sin", UNARY, spellings={"call": "cos"})
    assert fails(checks.check_primitive, next(cases_of(row)))


def test_a_wrong_value_is_noticed(plant: Any) -> None:
    case = plant(elementwise, lambda xp, x: 3 * x * x, forward=cube)(
        lambda library, x: x * x * x * (1 + 1e-11)
    )
    assert fails(checks.check_value, case)


def test_a_wrong_partial_is_noticed(plant: Any) -> None:
    case = plant(elementwise, lambda xp, x: 3.0001 * x * x, forward=cube)(cube)
    assert fails(checks.check_vjp, case)
    assert fails(checks.check_jvp, case)


def test_a_wrong_partial_is_noticed_beside_pytorch_and_jax(plant: Any) -> None:
    case = plant(elementwise, lambda xp, x: 3.0001 * x * x, forward=cube)(cube)
    assert fails(checks.check_torch, case, pytest.importorskip("torch"))
    assert fails(checks.check_jax, case, pytest.importorskip("jax"))


def _cube_with(vjp: Callable[..., Any], jvp: Callable[..., Any]) -> tuple[Any, dict[str, Any]]:
    return cube, {"vjp": (vjp,), "jvp": (jvp,)}


def test_a_forward_rule_that_differs_from_the_reverse_one_is_noticed(plant: Any) -> None:
    forward, rules = _cube_with(lambda xp, g, x: g * 3 * x * x, lambda xp, t, x: t * 3.0001 * x * x)
    case = plant(general, forward, **rules)(cube)
    assert not fails(checks.check_vjp, case)
    assert fails(checks.check_pairing, case)
    assert fails(checks.check_jvp, case)


def _turned(xp: Any, x: Any) -> Any:
    return xp.flip(x, axis=(0, 1))


def test_a_wrong_adjoint_is_noticed(plant: Any) -> None:
    case = plant(linear, lambda xp, g: xp.flip(g, axis=0), forward=_turned)(
        lambda library, x: library.flip(x, (0, 1))
    )
    assert fails(checks.check_vjp, case)
    assert fails(checks.check_pairing, case)


def test_a_rule_of_both_modes_whose_jacobian_is_not_symmetric_is_noticed(plant: Any) -> None:
    case = plant(
        symmetric,
        lambda xp, g: xp.roll(g, shift=(-1,), axis=(1,)),
        forward=lambda xp, x: xp.roll(x, shift=(1,), axis=(1,)),
    )(lambda library, x: library.roll(x, 1, 1))
    assert not fails(checks.check_vjp, case)
    assert fails(checks.check_jvp, case)
    assert fails(checks.check_pairing, case)


def test_a_conjugate_too_many_is_noticed(plant: Any) -> None:
    case = plant(elementwise, lambda xp, x: 3 * xp.conj(x * x), forward=cube)(cube, "complex128")
    assert fails(checks.check_vjp, case)
    assert fails(checks.check_jvp, case)


def test_a_term_dropped_from_the_second_order_is_noticed(plant: Any) -> None:
    # Right to twelve digits, but a staircase: its own derivative is zero.
    case = plant(elementwise, lambda xp, x: 3 * x * xp.floor(x * 2.0**40) / 2.0**40, forward=cube)(
        cube
    )
    assert not fails(checks.check_vjp, case)
    assert fails(checks.check_second_order, case)
    assert fails(checks.check_forward_over_forward, case)


def test_a_term_dropped_from_the_third_order_is_noticed(plant: Any) -> None:
    # What is added is tiny, and so is its derivative: but that one's is 1.
    def curved(xp: Any, x: Any) -> Any:
        rest = x - xp.floor(x * 2.0**40) / 2.0**40
        return 3 * x * x + 0.5 * rest * rest

    case = plant(elementwise, curved, forward=cube)(cube)
    assert not fails(checks.check_second_order, case)
    assert fails(checks.check_third_order, case)


def test_an_unused_output_that_counts_is_noticed(plant: Any) -> None:
    def both(xp: Any, x: Any) -> Any:
        return x * x, 3 * x

    def pulled(xp: Any, g: Any, x: Any) -> Any:
        return (2 * x * g[0] if 0 in g else 1.0) + 3 * g.get(1, 0.0)

    rules = {"vjp": (pulled,), "jvp": (lambda xp, t, x: (2 * x * t, 3 * t),)}
    case = plant(general, both, outputs=("square", "triple"), **rules)(
        lambda library, x: (x * x, 3 * x)
    )
    assert not fails(checks.check_vjp, case)
    assert fails(checks.check_unused_outputs, case)


def test_a_program_that_computes_something_else_is_noticed() -> None:
    def wrong(library: Any, x: Any) -> Any:
        return x * (2 if namespace(x._array).known else 3)

    row = Row("multiply", (situation("plain", (3,)),), spellings={"call": wrong})
    assert fails(checks.check_compiled, next(cases_of(row)))


def test_a_cotangent_cut_from_the_graph_is_noticed(plant: Any) -> None:
    def cut(xp: Any, g: Any, x: Any) -> Any:
        return xp.floor(g * 2.0**40) / 2.0**40 * 3 * x * x

    forward, rules = _cube_with(cut, lambda xp, t, x: t * 3 * x * x)
    case = plant(general, forward, **rules)(cube)
    assert not fails(checks.check_vjp, case)
    assert fails(checks.check_cotangent_derivative, case)


def test_a_product_that_is_wrong_for_one_input_alone_is_noticed() -> None:
    def wrong(library: Any, x: Any, y: Any) -> Any:
        return x * y if x.requires_grad and y.requires_grad else 2 * x * y

    for spelling, noticed in (("multiply", False), (wrong, True)):
        row = Row("multiply", (situation("plain", (3,), (3,)),), spellings={"call": spelling})
        assert (
            fails(checks.check_each_input_alone, Case(row, row.situations[0], "float64")) is noticed
        )


def test_a_lost_dtype_is_noticed(plant: Any) -> None:
    def wider(xp: Any, x: Any) -> Any:
        return xp.astype(x * x * x, "float64")

    case = plant(elementwise, lambda xp, x: 3 * x * x, forward=wider)(cube, "float32")
    assert fails(checks.check_value, case)


def test_a_rule_that_widens_is_noticed(plant: Any) -> None:
    def wider(xp: Any, x: Any) -> Any:
        return 3 * xp.astype(x * x, "float64")

    assert fails(checks.check_dtypes, plant(elementwise, wider, forward=cube)(cube, "float32"))


def test_gradients_that_nobody_casts_back_are_noticed(monkeypatch: Any) -> None:
    row = Row("multiply", (situation("plain", (3,), (3,)),), spellings={"call": "multiply"})
    mixed = Case(row, row.situations[0], "float64")
    assert not fails(checks.check_promotion, mixed)
    monkeypatch.setattr(BackwardPass, "unbroadcast", lambda self, g, shape, dtype: g)
    assert fails(checks.check_promotion, mixed)


def test_an_imprecise_rule_for_single_precision_is_noticed(plant: Any) -> None:
    def rounded(xp: Any, x: Any) -> Any:
        return (
            3 * x * x
            if x.dtype == "float64"
            else 3 * xp.astype(xp.astype(x * x, "float16"), x.dtype)
        )

    case = plant(elementwise, rounded, forward=cube)(cube, "float32")
    assert fails(checks.check_single_precision, case)


def _writing_forward(xp: Any, x: Any) -> Any:
    x += 0.0
    return x * x * x


def test_a_write_to_an_input_is_noticed(plant: Any) -> None:
    case = plant(elementwise, lambda xp, x: 3 * x * x, forward=_writing_forward)(cube)
    with pytest.raises((AssertionError, ValueError), match=r"read-only|not equal"):
        checks.check_untouched(case)


def test_a_rule_that_writes_to_its_cotangent_is_noticed(plant: Any) -> None:
    def writing(xp: Any, g: Any, x: Any) -> Any:
        g *= 3
        return g * x * x

    forward, rules = _cube_with(writing, lambda xp, t, x: t * 3 * x * x)
    case = plant(general, forward, **rules)(cube)
    with pytest.raises((AssertionError, ValueError, RuntimeError), match=r"in-place|not equal"):
        checks.check_untouched(case)


def test_a_dependence_on_memory_layout_is_noticed(plant: Any) -> None:
    def careless(xp: Any, g: Any, x: Any) -> Any:
        return g * 3 * x * x if g.flags.c_contiguous else g

    forward, rules = _cube_with(careless, lambda xp, t, x: t * 3 * x * x)
    assert fails(checks.check_contiguity, plant(general, forward, **rules)(cube))


def test_a_step_with_a_derivative_is_noticed() -> None:
    row = Row("floor", (situation("plain", (3,)),), spellings={"call": "sin"}, dtypes=REAL)
    assert fails(checks.check_constant, next(cases_of(row)))


def test_a_step_of_another_height_is_noticed() -> None:
    torch = pytest.importorskip("torch")
    row = Row("floor", (situation("plain", (3,)),), spellings={"call": "ceil"}, dtypes=REAL)
    steps = {"chainrule": "floor", "torch": "ceil"}
    assert not fails(checks.check_torch_value, next(cases_of(row)), torch)
    row = Row("floor", (situation("plain", (3,)),), spellings=steps, dtypes=REAL)
    assert fails(checks.check_torch_value, next(cases_of(row)), torch)


def test_a_step_may_be_declared(plant: Any) -> None:
    plant(constant, forward=lambda xp, x: xp.floor(x))
    assert not TABLE["planted"].differentiable
