"""The tests that run on a device: those of CI, and those that can't."""

from __future__ import annotations

SELECTED = (
    "tests/primitives/test_conformance.py::test_value_is_numpys",
    "tests/primitives/test_conformance.py::test_both_modes_agree",
    "tests/semantics/test_01_06_leaves.py",
    "tests/semantics/test_07_11_roots.py",
    "tests/semantics/test_12_14_grad.py",
    "tests/semantics/test_15_18_freeing.py",
    "tests/semantics/test_19_20_create_graph_and_inputs.py",
    "tests/semantics/test_21_25_autograd_grad.py",
    "tests/semantics/test_26_29_modes.py",
    "tests/semantics/test_31_33_versions.py",
    "tests/semantics/test_41_tensor_hooks.py",
    "tests/semantics/test_45_saved_tensors_hooks.py",
    "tests/semantics/test_46_47_calls.py",
    "tests/semantics/test_48_49_tracking.py",
    "tests/semantics/test_50_53_returned_gradients.py",
    "tests/semantics/test_54_57_outputs_and_saved.py",
    "tests/semantics/test_59_62_marks.py",
    "tests/semantics/test_65_66_70_values.py",
    "tests/semantics/test_67_anomaly.py",
    "tests/semantics/test_67_origin_of_nan.py",
    "tests/semantics/test_74_76_trust.py",
    "tests/linalg/test_deprecated.py",
    "tests/linalg/test_edge_cases.py",
    "tests/linalg/test_ex.py",
    "tests/ops/test_broadcasting.py",
    "tests/ops/test_cumulative.py",
    "tests/ops/test_dtypes.py",
    "tests/ops/test_einsum.py",
    "tests/ops/test_gradient.py",
    "tests/ops/test_inplace_functions.py",
    "tests/ops/test_order_statistics.py",
    "tests/ops/test_scatter.py",
    "tests/optim/test_optimizer.py",
    "tests/nn/test_normalization.py",
    "tests/transforms/test_gradients_jacobians.py",
    "tests/transforms/test_vmap.py",
    "tests/examples/test_tutorials.py::test_every_example_runs",
)
"""What `pytest --backend cuda` runs if no files are named."""

_REFUSED = "CuPy lacks the function, which is refused"
_COMPILED = "compiled functions are of the CPU"
_SHARED = "it looks at the memory of the host"
_MIXED = "it computes with tensors and arrays of NumPy"
_PRINTED = "the device is printed, too"
_SILENT = "CuPy raises nothing for overflow, division by zero and indices out of range"

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
    "test_s06_repr": _PRINTED,
    "test_s06_a_custom_function_is_named_in_repr": _PRINTED,
    "test_s06_printing_records_nothing_and_needs_no_grad_mode": _PRINTED,
    "test_s06_the_default_dtype_is_not_printed": _PRINTED,
    "test_s12_gradients_accumulate_in_place": _SHARED,
    "test_s13_nor_is_it_a_broadcast_buffer": _SHARED,
    "test_non_leaves_duplicates_and_read_only_memory": _SHARED,
    "test_s16_the_memory_is_let_go": _SHARED,
    "test_s28_sgd_by_hand_keeps_leaf_and_grad_the_same_objects": _SHARED,
    "test_s32_data_is_the_memory_outside_of_the_graph": _SHARED,
    "test_s32_tensor_copies_and_from_numpy_shares": _SHARED,
    "test_s32_from_numpy_says_that_it_shares": _SHARED,
    "test_s32_tensors_of_one_array_share_the_counter": _SHARED,
    "test_s53_writing_into_a_broadcast_gradient_writes_one_element": _SHARED,
    "test_s57_a_pass_lets_saved_values_go_while_the_output_lives": _SHARED,
    "test_s57_dropping_the_output_frees_everything_at_once": _SHARED,
    "test_s59_an_input_that_was_written_and_returned_is_dirty": "parts of memory of a device "
    "aren't told apart: the pass raises",
    "test_s62_the_alias_shares_memory_and_version": _SHARED,
    "test_s66_numpy_shares_memory": _SHARED,
    "test_broadcast_tensors": _SHARED,
    "test_s76_data_version_and_history_stay": _SILENT,
    "test_s76_where_numpy_is_told_to_raise": _SILENT,
    "test_s76_where_warnings_are_errors": _SILENT,
    "test_the_logarithm_of_a_determinant_that_is_zero": "singular systems give nan",
    "test_s32_data_in_a_compiled_function": _COMPILED,
    "test_a_compiled_call_from_before_is_released_too": _COMPILED,
    "test_in_a_compiled_function_the_line_is_that_of": _COMPILED,
    "test_transforms_can_be_compiled": _COMPILED,
    "test_jacobians_of_compiled_and_mapped_functions": _COMPILED,
    "test_the_cumulative_average_of_compiled_steps": _COMPILED,
    "test_compiled_vmaps_and_vmaps_of_compiled": _COMPILED,
    "test_arrays_of_a_trace_meet_batched_arrays": _COMPILED,
    "test_second_derivatives_of_powers_can_be_compiled": _COMPILED,
    "test_s65_numpy_scalars_are_weak_and_arrays_are_not": _MIXED,
    "test_s66_who_gives_numpy_a_list_is_told_of_stack[<lambda>]": _MIXED,
    "test_under_vmap_the_example_is_named": _MIXED,
    "test_gradients_and_hessians_of_each_example": _MIXED,
    "test_numpys_take_and_factors_of_each_example": _MIXED,
    "test_custom_functions_scans_and_numpys_functions": _MIXED,
    "test_tensors_from_outside_cannot_be_written_to": _MIXED,
    "test_values_that_all_examples_share_can_be_read": _MIXED,
    "test_values_and_shapes_that_differ_are_refused": _MIXED,
    "test_an_index_out_of_bounds_is_reported_for_one": "CuPy's indices out of range wrap around",
    "test_numbers_beside_arrays_take_their_dtype": _MIXED,
    "test_numpys_einsum_is_recorded": _MIXED,
    "test_operands_in_one_list_of_several_dtypes": _MIXED,
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
