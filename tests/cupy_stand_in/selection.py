"""The tests that run on a device: those of CI, and those that can't."""

from __future__ import annotations

SELECTED = (
    "tests/primitives/test_conformance.py::test_value_is_numpys",
    "tests/primitives/test_conformance.py::test_both_modes_agree",
    "tests/semantics/test_12_14_grad.py",
    "tests/semantics/test_19_20_create_graph_and_inputs.py",
    "tests/semantics/test_21_25_autograd_grad.py",
    "tests/ops/test_cumulative.py",
    "tests/ops/test_inplace_functions.py",
    "tests/ops/test_order_statistics.py",
    "tests/ops/test_scatter.py",
    "tests/optim/test_optimizer.py",
    "tests/nn/test_normalization.py",
    "tests/transforms/test_gradients_jacobians.py",
    "tests/examples/test_tutorials.py::test_every_example_runs",
)
"""What `pytest --backend cuda` runs if no files are named."""

_REFUSED = "CuPy lacks the function, which is refused"
_COMPILED = "compiled functions are of the CPU"
_SHARED = "it looks at the memory of the host"
_MIXED = "it computes with tensors and arrays of NumPy"

LEFT_OUT: dict[str, str] = {
    **{
        f"{test}[{name}": _REFUSED
        for test in ("test_value_is_numpys", "test_both_modes_agree")
        for name in ("bessel_", "erfi]", "dawsn]", "gammainc_moment]", "betainc_moment]")
    },
    "test_both_modes_agree[gammainc": _REFUSED,  # by their parameters
    "test_both_modes_agree[betainc": _REFUSED,
    "test_an_index_out_of_range_is_named": "CuPy's indices out of range wrap around",
    "test_the_largest_of_many_equal_elements_come_in_order": "CuPy leaves their order open",
    "test_s12_gradients_accumulate_in_place": _SHARED,
    "test_s13_nor_is_it_a_broadcast_buffer": _SHARED,
    "test_non_leaves_duplicates_and_read_only_memory": _SHARED,
    "test_transforms_can_be_compiled": _COMPILED,
    "test_jacobians_of_compiled_and_mapped_functions": _COMPILED,
    "test_the_cumulative_average_of_compiled_steps": _COMPILED,
    "test_auxiliary_results_are_returned": _MIXED,
    "test_a_backward_pass_reaches_what_a_gradient_closes_over": _MIXED,
    "test_a_custom_function_needs_no_rule_of_forward_mode": _MIXED,
    "test_a_linear_approximation_is_computed_once": _MIXED,
    "test_a_vjp_function_can_be_called_again_and_takes_none": _MIXED,
    "test_every_example_runs[kalman_likelihood]": _MIXED,
    "test_every_example_runs[logistic_laplace]": _MIXED,
    "test_every_example_runs[ridge_bilevel]": _MIXED,
    "test_every_example_runs[logistic_on_dask]": "its workers compute on the CPU",
    "test_every_example_runs[split_model]": "ranks exchange arrays of NumPy",
    "test_every_example_runs[tutorial_3_exercises]": _MIXED,
}
"""Beginnings of the names of tests that can't run on a device, and why."""


def is_left_out(name: str) -> bool:
    return any(name.startswith(beginning) for beginning in LEFT_OUT)
