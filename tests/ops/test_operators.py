"""Python's operators in both orders, and NumPy's ufuncs on tensors."""

import operator

import numpy as np
import pytest

import chainrule as cr

ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
OTHERS = [
    3,
    2.5,
    np.float64(2.5),
    np.float32(2.5),
    np.int64(3),
    np.array([2.0, 3.0]),
    np.array([[2.0], [3.0]]),
    np.array(2.5),
]


@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS)
@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_an_operator_is_right_in_both_orders(op, other):
    x = np.array([1.5, 4.0])
    t = cr.tensor(x)
    for result, expected in ((op(t, other), op(x, other)), (op(other, t), op(other, x))):
        assert isinstance(result, cr.Tensor)
        np.testing.assert_allclose(result.numpy(), expected)


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("scalar", [3, 2.5, np.float64(2.5), np.int64(3), True], ids=repr)
def test_scalars_are_weak(op, scalar):
    if scalar is True and op is operator.sub:
        return  # NumPy's and PyTorch's subtraction refuse bools
    for dtype in ("float16", "float32", "float64"):
        t = cr.tensor([1.5, 4.0], dtype=dtype)
        assert op(t, scalar).dtype == dtype
        assert op(scalar, t).dtype == dtype


@pytest.mark.parametrize("scalar", [1j, np.complex64(1j)])
def test_a_complex_scalar_makes_a_complex_tensor_of_the_same_precision(scalar):
    assert (cr.ones(2) * scalar).dtype == cr.complex64
    assert (scalar * cr.ones(2, dtype=cr.float64)).dtype == cr.complex128


def test_zero_dimensional_operands():
    x, y = cr.tensor(3.0), cr.tensor(2.0)
    for op in ARITHMETIC:
        result = op(x, y)
        assert result.shape == ()
        assert result.item() == pytest.approx(op(3.0, 2.0))


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor])
def test_logic(op):
    x, y = np.array([True, True, False]), np.array([True, False, False])
    np.testing.assert_array_equal(op(cr.tensor(x), cr.tensor(y)).numpy(), op(x, y))
    np.testing.assert_array_equal(op(cr.tensor(x), True).numpy(), op(x, True))
    np.testing.assert_array_equal(op(True, cr.tensor(x)).numpy(), op(True, x))
    np.testing.assert_array_equal(op(y, cr.tensor(x)).numpy(), op(y, x))
    assert op(cr.tensor([6, 3]), 2).tolist() == op(np.array([6, 3]), 2).tolist()


@pytest.mark.parametrize("op", [operator.eq, operator.ne, operator.lt, operator.ge])
@pytest.mark.parametrize("number", [-1, 300])
def test_integers_compare_with_those_their_dtype_does_not_have(op, number):
    x = cr.tensor([0, 255], dtype=cr.uint8)
    assert op(x, number).tolist() == [op(value, number) for value in (0, 255)]


def test_complex_numbers_alone_have_the_default_precision():
    assert cr.add(2j, 1).dtype == cr.where(cr.tensor(True), 1j, 2).dtype == cr.complex64


def test_unary_operators():
    x = cr.tensor([1.0, -2.0])
    assert (-x).tolist() == [-1, 2]
    assert (+x).tolist() == [1, -2]
    assert abs(x).tolist() == [1, 2]
    assert (~cr.tensor([True, False])).tolist() == [False, True]
    assert round(2.5) == 2  # the builtin is not touched by `from chainrule import *`


@pytest.mark.parametrize("op", [*ARITHMETIC, operator.lt, operator.matmul, operator.and_])
def test_a_foreign_operand_is_refused_by_python(op):
    for left, right in ((cr.ones(2), "two"), ("two", cr.ones(2)), (cr.ones(2), None)):
        if op is operator.mod and left == "two":
            continue  # the string formats the tensor
        with pytest.raises(TypeError):
            op(left, right)


def test_a_foreign_operand_may_define_the_operator():
    class Other:
        def __radd__(self, other):
            return "mine"

        def __add__(self, other):
            return "mine"

    assert cr.ones(2) + Other() == "mine"
    assert Other() + cr.ones(2) == "mine"


def test_equality_with_a_foreign_object_is_identity():
    x = cr.ones(2)
    assert (x == None) is False  # noqa: E711
    assert (x != "two") is True


@pytest.mark.parametrize(
    "shapes", [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((2,), (2, 3)), ((5, 2, 3), (3, 4))]
)
def test_matmul(shapes):
    x, y = (np.random.default_rng(0).random(shape) for shape in shapes)
    for left, right in ((cr.tensor(x), cr.tensor(y)), (x, cr.tensor(y)), (cr.tensor(x), y)):
        np.testing.assert_allclose((left @ right).numpy(), x @ y)


def test_gradients_flow_through_both_orders():
    x = cr.tensor([2.0, 4.0], requires_grad=True)
    (1 - x).sum().backward()
    assert x.grad.tolist() == [-1, -1]
    (g,) = cr.autograd_grad((8 / x).sum(), [x])
    assert g.tolist() == [-2, -0.5]
    (g,) = cr.autograd_grad((np.array([3.0, 5.0], np.float32) * x).sum(), [x])
    assert g.tolist() == [3, 5]


# --- in place -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (operator.iadd, [7, 9]),
        (operator.isub, [3, 5]),
        (operator.imul, [10, 14]),
        (operator.itruediv, [2.5, 3.5]),
        (operator.ifloordiv, [2, 3]),
        (operator.imod, [1, 1]),
        (operator.ipow, [25, 49]),
    ],
)
def test_an_augmented_assignment_writes_in_place(op, expected):
    x = cr.tensor([5.0, 7.0])
    same = x
    x = op(x, 2)
    assert x is same
    assert x.tolist() == expected


def test_an_augmented_assignment_is_recorded():
    w = cr.tensor([1.0, 2.0], requires_grad=True)
    x = w * 1
    x += 1
    x *= w
    x.sum().backward()
    assert w.grad.tolist() == [3, 5]


# --- NumPy's ufuncs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ufunc", "at"),
    [
        (np.sin, 0.5),
        (np.arcsin, 0.5),
        (np.arctanh, 0.5),
        (np.absolute, -0.5),
        (np.fabs, -0.5),
        (np.rint, 0.7),
        (np.log1p, 0.5),
        (np.isnan, 0.5),
        (np.square, 0.5),
    ],
)
def test_a_ufunc_on_a_tensor_gives_a_tensor(ufunc, at):
    result = ufunc(cr.tensor([at]))
    assert isinstance(result, cr.Tensor)
    np.testing.assert_allclose(result.numpy(), ufunc(np.array([at], np.float32)), rtol=1e-6)


def test_a_ufunc_is_recorded():
    x = cr.tensor([0.5, 1.0], requires_grad=True)
    np.sin(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos([0.5, 1.0]), rtol=1e-6)
    assert np.power(x, 3).grad_fn.name == "PowBackward0"
    assert np.add(np.ones(2), x).requires_grad


def test_a_ufunc_without_rule_says_so():
    x = cr.ones(2)
    with pytest.raises(TypeError, match=r"np\.subtract\.reduce has no derivative rule"):
        np.subtract.reduce(x)
    a = np.ones(2)
    with pytest.raises(TypeError, match="takes no out"):
        a += x
    assert a.tolist() == [1, 1]


def test_a_ufunc_leaves_foreign_operands_to_others():
    class Other:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "mine"

    assert cr.ones(2) + Other() == "mine"
    with pytest.raises(TypeError):
        np.add(cr.ones(2), ["a"])


IN_PLACE = [
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv),
    *(operator.imod, operator.ipow, operator.iand, operator.ior, operator.ixor),
    *(operator.ilshift, operator.irshift, operator.imatmul),
]


class Guest:
    """An object with operators of its own, which is no array."""

    def answer(self, other):
        return type(other)

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = answer
    __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = __rmatmul__ = answer


@pytest.mark.parametrize("function", IN_PLACE)
def test_operators_in_place_defer_to_foreign_operands(function):
    x = cr.tensor([1, 2])
    assert function(x, Guest()) is cr.Tensor
    with pytest.raises(TypeError, match="unsupported operand type"):
        function(x, object())
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_"])
def test_methods_in_place_say_what_they_take(name):
    with pytest.raises(
        TypeError, match=f"{name}: expected a Tensor, an array or a number, got str"
    ):
        getattr(cr.ones(2), name)("3")
    with pytest.raises(TypeError, match="got str"):
        getattr(cr.ones(2, requires_grad=True) * 1, name)("3")


def test_none_and_tensors_of_pytorch_are_refused_with_a_mend():
    x = cr.ones(2)
    with pytest.raises(TypeError, match=r"'Tensor' and 'NoneType': is a return .* or is it a \.g"):
        x * None
    with pytest.raises(TypeError, match=r"'NoneType'.*test_operators\.py"):
        None * x
    other = type("Tensor", (), {"__module__": "torch"})()
    with pytest.raises(TypeError, match=r"'Tensor' and 'torch\.Tensor': write cr\.from_dlpack"):
        x + other
