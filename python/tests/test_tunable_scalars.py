"""Scalars whose type a tunable parameter chooses."""

import warnings

import numpy as np
import pytest

from tuner.kernel_tuner import tune_kernel
from tuner.kernel_tuner.tunable_scalars import converting

BODY = "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = real(1) / f + x[i]; }"
PLAIN = 'extern "C" __global__ void scale(float *y, const float *x, const real f /* of type, */, int n)'
TYPES = {"real": ["float", "double", "int"]}


def verdicts(kernel, source, params, factor, **more):
    x = np.arange(1000, dtype=np.float32)
    arguments = [np.zeros_like(x), x, factor, np.int32(x.size)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, _ = tune_kernel(kernel, source, x.size, arguments, {"block_size_x": [64], **params}, device="vgpu:a100", quiet=True,
                              answer=[x + np.float32(0.5), None, None, None], atol=1e-6, **more)  # fmt: skip
    return {row["real"]: row["verdict"] for row in rows}


@pytest.mark.parametrize("factor", [np.float32(2), np.float64(2), np.int32(2)])
@pytest.mark.parametrize(
    ("kernel", "source"),
    [
        ("scale", PLAIN + ";\n" + PLAIN + "\n" + BODY),
        ("scale<real>", "template <typename T> __global__ void scale(float *y, const float *x, T f, int n) " + BODY),
    ],
)
def test_a_scalar_is_converted_to_the_type_that_a_parameter_chooses(place, kernel, source, factor):
    assert verdicts(kernel, source, TYPES, factor) == {"float": "ok", "double": "ok", "int": "incorrect"}


def test_the_kernel_may_be_in_another_file_or_a_generated_source(place):
    (place / "kernel.cuh").write_text(PLAIN + BODY)
    (place / "main.cu").write_text('#include "kernel.cuh"\n')
    listed = ["main.cu", "kernel.cuh"]
    right = {"float": "ok", "double": "ok", "int": "incorrect"}
    assert verdicts("scale", listed, TYPES, np.float32(2), lang="CUDA") == right
    generated = lambda params: PLAIN.replace("real", params["real"]) + BODY  # noqa: E731
    assert verdicts("scale", generated, TYPES, np.float32(2), lang="CUDA") == right


def test_types_that_are_not_converted_are_told(place):
    with pytest.raises(TypeError, match="argument 2 has the dtype float16, and a tunable parameter chooses the type of `const real f`"):
        verdicts("scale", PLAIN + BODY, TYPES, np.float16(2))
    (place / "kernel.cuh").write_text(PLAIN + BODY)
    with pytest.raises(TypeError, match="argument 2 is a scalar .* only where its definition is in kernel_source"):
        verdicts("scale", '#include "kernel.cuh"\n', TYPES, np.float32(2), lang="CUDA")


def test_declarations_are_changed_with_the_definition():
    source = "__global__ void k(T a, int b); // k(T)\n__global__ void __launch_bounds__(N) k(T a, int b) { a += b; }"
    assert converting(source, "k", {0: "float"}) == (
        "__global__ void k(float KT_given_a, int b); // k(T)\n"
        "__global__ void __launch_bounds__(N) k(float KT_given_a, int b) { T a = KT_given_a; a += b; }"
    )
    assert converting("__global__ void other(T a) {}", "k", {0: "float"}) is None
