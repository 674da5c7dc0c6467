"""The `answer` of a script: what it may be, and values that the outputs cannot hold."""

import warnings

import numpy as np
import pytest
from conftest import SOURCE

from tuner.kernel_tuner import run_kernel, tune_kernel
from tuner.kernel_tuner.arguments import check_answer

PARAMS = {"block_size_x": [32, 64]}


def verdicts(name, source, arguments, answer, size=1000, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, _ = tune_kernel(name, source, size, arguments, PARAMS, answer=answer, device="vgpu:a100", quiet=True, **options)
    return {row["verdict"] for row in rows}


def test_an_answer_may_list_inputs_and_hold_any_array_of_the_values(vectors):
    _, a, b, n = vectors
    apart = np.zeros((1000, 2), np.float32)
    apart[:, 0] = a + b
    for expected in (a + b, (a + b).tolist(), apart[:, 0], (a + b).astype(">f4")):
        assert verdicts("vector_add", SOURCE, vectors, [expected, a, b, n]) == {"ok"}
        assert verdicts("vector_add", SOURCE, vectors, [expected, None, None, None]) == {"ok"}
    assert verdicts("vector_add", SOURCE, vectors, [a - b, a, b, n]) == {"incorrect"}
    for inputs in ([b, b, n], [a, b, np.int32(1)]):
        with pytest.raises(ValueError, match=r"element \d of answer differs from the argument, which is an input"):
            verdicts("vector_add", SOURCE, vectors, [a + b, *inputs])


@pytest.mark.parametrize(
    ("ctype", "dtype", "value"),
    [("int", np.int32, 1.7), ("int", np.int32, 1 + 2**32), ("unsigned char", np.uint8, -255), ("bool", bool, 2), ("float", np.float32, 1e300)],
)
def test_an_answer_that_the_output_cannot_hold_is_refused_and_not_cut(ctype, dtype, value):
    source = f"__global__ void k({ctype} *o) {{ o[blockIdx.x * block_size_x + threadIdx.x] = 1; }}"
    with pytest.raises(ValueError, match="element 0 of answer has values that the argument's dtype"):
        verdicts("k", source, [np.zeros(64, dtype)], [np.full(64, value)], size=64)


def test_an_array_without_dimensions_is_an_array_of_one_element():
    source = "__global__ void k(float *o, const float *x, float y) { if (threadIdx.x == 0) o[0] = x[0] * y; }"
    arguments = [np.array(0, np.float32), np.array(3, np.float32), np.array(2, np.float32)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert run_kernel("k", source, 1, arguments, {"block_size_x": 32}, device="vgpu:a100")[0] == 6
    assert verdicts("k", source, arguments, [np.float32(6), None, None], size=1) == {"ok"}


def test_a_subclass_of_an_array_is_passed_as_its_data(vectors):
    c, a, b, n = vectors
    assert verdicts("vector_add", SOURCE, [c, np.ma.array(a), b, n], [np.ma.array(a + b), None, None, None]) == {"ok"}


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_answer_in_the_dtype_of_the_argument_is_not_copied(order):
    answer, argument = np.ones((8, 4), np.float32, order=order), np.zeros((8, 4), np.float32, order=order)
    (expected,) = check_answer([answer], [argument], False, [False])
    assert np.shares_memory(expected, answer)
