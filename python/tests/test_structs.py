"""Structs and vectors of CUDA as structured dtypes."""

import warnings

import numpy as np
import pytest

from tuner.kernel_tuner import run_kernel, tune_kernel

INDEX = "int i = blockIdx.x * block_size_x + threadIdx.x;"
FLOAT3 = np.dtype([(name, "f4") for name in "xyz"])
FLOAT4 = np.dtype([(name, "f4") for name in "xyzw"])
INT2 = np.dtype([("x", "i4"), ("y", "i4")])


def run(source, arguments):
    return run_kernel("k", source, 64, arguments, {"block_size_x": 32}, device="vgpu:a100")


@pytest.mark.parametrize("value", [np.array((1, 2, 3), FLOAT3), np.array([(1, 2, 3)], FLOAT3)[0]])
def test_a_vector_is_passed_by_value(value):
    source = f"__global__ void k(float *o, const float3 v) {{ {INDEX} o[i] = v.x + v.y * 10 + v.z * 100; }}"
    assert (run(source, [np.zeros(64, np.float32), value])[0] == 321).all()


def test_arrays_of_vectors_are_compared():
    source = f"__global__ void k(float4 *o, const float4 *x) {{ {INDEX} float4 t = x[i]; t.w = i; o[i] = t; }}"
    answer = np.ones(64, FLOAT4)
    answer["w"] = np.arange(64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for expected, verdict in ((answer, "ok"), (np.ones(64, FLOAT4), "incorrect")):
            rows, _ = tune_kernel(
                "k", source, 64, [np.zeros(64, FLOAT4), np.ones(64, FLOAT4)], {"block_size_x": [32]},
                answer=[expected, None], device="vgpu:a100", quiet=True,
            )  # fmt: skip
            assert [row["verdict"] for row in rows] == [verdict]


def test_a_struct_may_have_vectors_and_padding():
    kind = np.dtype([("m", INT2), ("q", INT2, (2,)), ("n", "i1"), ("_pad", "u1", (7,)), ("f", "f8")])
    value = np.zeros(1, kind)[0]
    value["q"][1]["y"], value["m"]["y"], value["f"] = 7, 5, 0.5
    source = f"""struct S {{ int2 m; int2 q[2]; signed char n; double f; }};
    __global__ void k(float *o, S v, S *w) {{ {INDEX} o[i] = v.q[1].y + v.m.y * 10 + v.f; w[i] = v; }}"""
    o, _, w = run(source, [np.zeros(64, np.float32), value, np.zeros(64, kind)])
    assert (o == 57.5).all() and (w["q"]["y"][:, 1] == 7).all() and (w["f"] == 0.5).all()
    value["_pad"] = 1
    with pytest.raises(ValueError, match="`_pad` of argument 1 is padding by its name, and has contents"):
        run(source, [np.zeros(64, np.float32), value, np.zeros(64, kind)])


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (np.dtype([("a", "i1"), ("b", "f8")]), "argument 0 has `b` at byte 1, and CUDA places it at byte 8; .*align=True"),
        (np.dtype([("b", "f8"), ("a", "i1")]), "argument 0 has structs of 9 bytes, which CUDA makes 16 bytes large"),
        (np.dtype({"names": ["a", "b"], "formats": ["f4", "i4"], "offsets": [4, 0]}), "argument 0 has `a` at byte 4.*in the order"),
        (np.dtype([("p", [("s", "f4"), ("t", "i4")]), ("n", "i4")]), "p of argument 0 is a struct in a struct"),
    ],
)
def test_a_struct_that_cuda_lays_out_otherwise_is_refused(kind, said):
    with pytest.raises(TypeError, match=said):
        run(f"__global__ void k(char *o) {{ {INDEX} o[i] = 1; }}", [np.zeros(64, kind)])


def test_an_array_for_one_struct_is_refused():
    kind = np.dtype([("x", np.float32), ("n", np.int32)], align=True)
    source = "struct P { float x; int n; };\n__global__ void k(float *c, P p) { c[0] = p.x; }\n"
    with pytest.raises(TypeError, match=r"argument 1 is an array of structs and `P p` is one struct; pass an element, such as `p\[0\]`"):
        tune_kernel("k", source, 1, [np.zeros(1, np.float32), np.zeros(1, kind)], {"block_size_x": [32]})
