"""Scalars whose type a tunable parameter chooses."""

import warnings

import numpy as np
import pytest

from tuner.kernel_tuner import signature, tune_kernel
from tuner.kernel_tuner.tunable_scalars import NoFittingList, converting, head_macros

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


def converted(source, place=0, kind="float", macros=()):
    text, defined = converting(source, "k", {place: kind}, signature.parameters_of(source, "k"), macros)
    assert defined
    return text


def test_declarations_are_changed_with_the_definition():
    source = "__global__ void k(T, const int);\n__global__ void k(T x, int b); // k(T)\n"
    assert converted(source + "__global__ void __launch_bounds__(N) k(const T a, int b) { a += b; }") == (
        "__global__ void k(float, const int);\n__global__ void k(float KT_given_x, int b); // k(T)\n"
        "__global__ void __launch_bounds__(N) k(float KT_given_a, int b) { const T a = KT_given_a; a += b; }"
    )
    assert not converting("__global__ void other(T a) {}", "k", {0: "float"}, []).defined


TWO = "#define KERNEL __global__ void\n#define KERNEL_LB(n) __global__ void __launch_bounds__(n)\n"
CLASSIC = "template <typename T> __global__ void k(float *y, T a) { *y = a; }\n"


@pytest.mark.parametrize(
    ("source", "result"),
    [
        # Macros that stand for `__global__`.
        (
            TWO + "KERNEL_LB(64) k(float *y, T a) { *y = a; }",
            TWO + "KERNEL_LB(64) k(float *y, float KT_given_a) { T a = KT_given_a; *y = a; }",
        ),
        # A definition that is not compiled.
        (
            "#ifdef OLD\n__global__ void k(float *y) {}\n#endif\n__global__ void k(float *y, T a) {}",
            "#ifdef OLD\n__global__ void k(float *y) {}\n#endif\n__global__ void k(float *y, float KT_given_a) { T a = KT_given_a;}",
        ),
        # Explicit instantiations.
        (
            CLASSIC + "template __global__ void k<double>(float*,\n double);\nextern template __global__ void k(float*, int);",
            "template <typename T> __global__ void k(float *y, float KT_given_a) { T a = KT_given_a; *y = a; }\n\n\n",
        ),
        # A specialization.
        (
            CLASSIC + "template <> __global__ void k<int>(float *y, int b) {}",
            "template <typename T> __global__ void k(float *y, float KT_given_a) { T a = KT_given_a; *y = a; }\n"
            "template <> __global__ void k<int>(float *y, float KT_given_b) { int b = KT_given_b;}",
        ),
    ],
)  # fmt: skip
def test_each_declaration_is_converted_once(source, result):
    parameters = [signature.Parameter("y", "float *y", True, False, True), signature.Parameter("a", "T a", False, False, False)]
    assert converting(source, "k", {1: "float"}, parameters, head_macros(source)) == (result, True)


@pytest.mark.parametrize(
    "source",
    [
        "#define ARGS float *y, T a\n__global__ void k(ARGS) {}",
        CLASSIC + "#define INSTANCE(T) \\\n  template __global__ void k<T>(float*, T)\nINSTANCE(int);",
        CLASSIC + "template <> __global__ void k(float *y, int b) {}",
    ],
)
def test_lists_that_are_not_written_out_are_refused(source):
    parameters = [signature.Parameter("y", "float *y", True, False, True), signature.Parameter("a", "T a", False, False, False)]
    with pytest.raises(NoFittingList):
        converting(source, "k", {1: "float"}, parameters)


AXPY = """template <typename T, int BLOCK> __global__ void axpy(T *y, const T *x, T a, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) y[i] = VALUE;
}
"""
BLOCKS = {"block_size_x": [64, 128]}


def results(kernel, source, arguments, params, expected):
    """Returns the verdicts of a kernel with an output, which is the first argument."""
    answer = [expected, *[None] * (len(arguments) - 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, _ = tune_kernel(kernel, source, 1000, arguments, params, device="vgpu:a100", quiet=True, answer=answer, lang="CUDA")
    return [row["verdict"] for row in rows]


def axpy(kernel, value, dtype, factor, params=BLOCKS, source=None):
    x = (np.arange(1000) % 64).astype(dtype)
    source = source or "#include <cuda_fp16.h>\n" + AXPY.replace("VALUE", value)
    return results(kernel, source, [np.zeros_like(x), x, factor, np.int32(1000)], params, x * 2)


def test_numbers_of_a_template_choose_no_type(place):
    (place / "axpy.cuh").write_text(AXPY.replace("VALUE", "a * x[i]"))
    included = '#include "axpy.cuh"\n'
    assert axpy("axpy<float, block_size_x>", "", np.float32, np.float32(2), source=included) == ["ok", "ok"]
    listed = "#define ARGS float *y, const float *x, float a, int n\n" + AXPY.replace("T *y, const T *x, T a, int n", "ARGS")
    listed = listed.replace("typename T, ", "").replace("VALUE", "a * x[i]")
    assert axpy("axpy<block_size_x>", "", np.float32, np.float32(2), source=listed) == ["ok", "ok"]


def test_definitions_that_no_parameter_chooses_are_no_choice(place):
    kernel = AXPY.replace("template <typename T, int BLOCK> ", "").replace("BLOCK", "block_size_x").replace("T ", "real ")
    (place / "real.cuh").write_text(kernel.replace("VALUE", "a * x[i]"))
    source = '#ifdef USE_DOUBLE\ntypedef double real;\n#else\ntypedef float real;\n#endif\n#include "real.cuh"\n'
    assert axpy("axpy", "", np.float32, np.float32(2), source=source) == ["ok", "ok"]


def test_a_fixed_type_may_be_any(place):
    assert axpy("axpy<half, block_size_x>", "a * x[i]", np.float16, np.float16(2)) == ["ok", "ok"]
    product = "make_float2(a.x * x[i].x, a.x * x[i].y)"
    assert axpy("axpy<float2, block_size_x>", product, np.complex64, np.complex64(2)) == ["ok", "ok"]
    pair = np.zeros((), dtype=[("a", "f4"), ("b", "f4")])[()]
    pair["a"] = 2
    source = "template <typename T> struct P2 { T a, b; };\n" + AXPY.replace("T a, int n", "P2<T> a, int n").replace("VALUE", "a.a * x[i]")
    assert axpy("axpy<float, block_size_x>", "", np.float32, pair, source=source) == ["ok", "ok"]
    # One value is no choice, and two spellings are one type.
    one = {"block_size_x": [64], "real": ["half", "__half"]}
    assert axpy("axpy<real, block_size_x>", "a * x[i]", np.float16, np.float16(2), one) == ["ok", "ok"]
    two = {"block_size_x": [64], "real": ["float2", "double2"]}
    with pytest.raises(TypeError, match="argument 2 has the dtype complex64"):
        axpy("axpy<real, block_size_x>", product, np.complex64, np.complex64(2), two)


def test_the_scalar_of_the_script_is_converted_for_each_generated_source(place):
    source = "#include <cuda_fp16.h>\n" + PLAIN + BODY.replace("real(1) / f", "0.25f * (float)f")
    generated = lambda params: source.replace("real", params["real"])  # noqa: E731
    for types in (["__half", "float"], ["float", "__half"]):
        assert verdicts("scale", generated, {"real": types}, np.float32(2), lang="CUDA") == dict.fromkeys(types, "ok")


def test_instantiations_and_macros_of_a_converted_kernel(place):
    kernel = "template <typename T> __global__ void scale(float *y, const float *x, T f, int n) " + BODY.replace("real", "T") + "\n"
    instances = "".join(f"template __global__ void scale<{kind}>(float*, const float*, {kind}, int);\n" for kind in ("double", "float"))
    types = {"real": ["float", "double"]}
    assert verdicts("scale<real>", kernel + instances, types, np.float32(2), lang="CUDA") == {"float": "ok", "double": "ok"}
    heads = "#define KERNEL __global__ void\n#define KERNEL_LB(n) __global__ void __launch_bounds__(n)\n"
    source = heads + PLAIN.replace("__global__ void", "KERNEL") + BODY
    assert verdicts("scale", source, types, np.float32(2), lang="CUDA") == {"float": "ok", "double": "ok"}
    listed = "#define ARGS float *y, const float *x, real f, int n\n__global__ void scale(ARGS) " + BODY
    with pytest.raises(TypeError, match="argument 2 .* its parameters and instantiations are written without macros"):
        verdicts("scale", listed, types, np.float32(2), lang="CUDA")
    # A generated source, too, is told.
    generated = lambda params: (listed if params["real"] == "double" else PLAIN + BODY).replace("real", params["real"])  # noqa: E731
    with pytest.raises(TypeError, match="argument 2 .* its parameters and instantiations are written without macros"):
        verdicts("scale", generated, types, np.float32(2), lang="CUDA")


def test_declarations_in_files_that_are_not_written(place):
    head = "template <typename T> __global__ void scale(float *y, const float *x, T f, int n)"
    (place / "scale.cuh").write_text(head.replace("T f", "T") + ";\n")
    source = '#include "scale.cuh"\n' + head + BODY.replace("real", "T")
    assert verdicts("scale<real>", source, {"real": ["float"]}, np.float32(2), lang="CUDA") == {"float": "ok"}
    with pytest.raises(TypeError, match="argument 2 .* with its declarations"):
        verdicts("scale<real>", source, TYPES, np.float32(2), lang="CUDA")
    (place / "scale.cu").write_text(source)
    right = {"float": "ok", "double": "ok"}
    assert verdicts("scale<real>", ["scale.cu", "scale.cuh"], {"real": ["float", "double"]}, np.float32(2), lang="CUDA") == right
