"""Arguments of other types and orders than the kernel's parameters, and kernels whose parameters are hard to find."""

import warnings

import numpy as np
import pytest

from tuner.kernel_tuner import run_kernel, tune_kernel
from tuner.kernel_tuner.conversions import ConvertedArgumentWarning, declared_dtype
from tuner.kernel_tuner.problem import UnknownSignatureWarning
from tuner.kernel_tuner.references import RaceWarning
from tuner.kernel_tuner.signature import parameters_of

INDEX = "int i = blockIdx.x * block_size_x + threadIdx.x;"


def run(source, arguments, size=64, name="k", params=None, **options):
    params = {"block_size_x": 32} if params is None else params
    return run_kernel(name, source, size, arguments, params, device="vgpu:a100", **options)


def quiet(call, *words, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*words, **options)


@pytest.mark.parametrize(
    ("declared", "argument", "expected"),
    [
        ("unsigned int m", np.int32(3), 3),
        ("const unsigned m", np.int32(3), 3),
        ("int m", np.int64(-3), -3),
        ("float m", np.float64(0.5), 0.5),
        ("float m", np.int32(2), 2),
        ("size_t m", np.int32(7), 7),
        ("double m", np.float32(0.5), 0.5),
    ],
)
def test_a_scalar_of_another_type_is_converted_with_a_warning(declared, argument, expected):
    source = f"__global__ void k(float *o, {declared}) {{ {INDEX} o[i] = m; }}"
    with pytest.warns(ConvertedArgumentWarning, match="argument 1 has the dtype"):
        (o, m) = run(source, [np.zeros(64, np.float32), argument])
    assert (o == expected).all() and m is argument


@pytest.mark.parametrize(("one", "other", "ctype"), [("int32", "uint32", "unsigned int"), ("uint8", "int8", "signed char"), ("uint8", "bool", "bool")])
def test_an_array_of_the_other_sign_is_passed_as_it_is(one, other, ctype):
    source = f"__global__ void k({ctype} *o, const {ctype} *x) {{ {INDEX} o[i] = x[i]; }}"
    x = (np.arange(64) % 2).astype(one)
    with pytest.warns(ConvertedArgumentWarning):
        o = run(source, [np.zeros_like(x), x])[0]
    assert o.dtype == x.dtype and (o == x).all()
    rows, _ = quiet(
        tune_kernel, "k", source, 64, [np.zeros_like(x), x], {"block_size_x": [32, 64]}, answer=[x, None],
        device="vgpu:a100", quiet=True,
    )  # fmt: skip
    assert {row["verdict"] for row in rows} == {"ok"}


def test_a_value_that_does_not_fit_is_refused():
    source = f"__global__ void k(float *o, int m) {{ {INDEX} o[i] = m; }}"
    with pytest.raises(ValueError, match=r"argument 1 is 5000000000 and `int m` cannot hold it; pass numpy.int32"):
        run(source, [np.zeros(64, np.float32), np.int64(5_000_000_000)])
    with pytest.raises(ValueError, match="argument 1 is 0.5"):
        run(source, [np.zeros(64, np.float32), np.float64(0.5)])


def test_declared_types():
    source = "__global__ void k(const unsigned long long *a, T b, std::size_t c, unsigned char, float4 *d, long int e) {}"
    found = [declared_dtype(each) for each in parameters_of(source, "k")]
    assert found == [np.uint64, None, np.uint64, np.uint8, None, np.int64]


def test_infinite_scalars():
    source = f"__global__ void k(float *o, float m) {{ {INDEX} o[i] = m < 0 ? -1.0f : (m > 1e38f ? 1.0f : 0.0f); }}"
    assert (run(source, [np.zeros(64, np.float32), np.float32(np.inf)])[0] == 1).all()
    assert (run(source, [np.zeros(64, np.float32), np.float32(-np.inf)])[0] == -1).all()


def test_an_array_in_the_order_of_fortran_is_passed_as_it_is_in_memory():
    source = f"__global__ void k(float *o, const float *x) {{ {INDEX} o[i] = x[i] + i; }}"
    x = np.asfortranarray(np.arange(64, dtype=np.float32).reshape(8, 8))
    expected = x + np.arange(64, dtype=np.float32).reshape(8, 8).T
    o = run(source, [np.zeros_like(x), x])[0]
    assert (o == expected).all() and o.flags.f_contiguous
    rows, _ = quiet(
        tune_kernel, "k", source, 64, [np.zeros_like(x), x], {"block_size_x": [32]}, device="vgpu:a100", quiet=True,
        answer=[np.ascontiguousarray(expected), None],
    )  # fmt: skip
    assert rows[0]["verdict"] == "ok"


def test_structs_are_passed_by_their_fields():
    kind = np.dtype([("x", np.float32), ("n", np.int32), ("v", np.float32, (2,))])
    source = f"""struct P {{ float x; int n; float v[2]; }};
    __global__ void k(P *o, const P *a, P p) {{ {INDEX} P t = a[i]; t.x += p.v[1]; t.n += p.n; o[i] = t; }}"""
    a = np.zeros(64, kind)
    a["x"], a["n"], a["v"] = np.arange(64), 3, 2
    o = run(source, [np.zeros(64, kind), a, a[5]])[0]
    assert (o["x"] == np.arange(64) + 2).all() and (o["n"] == 6).all()
    rows, _ = quiet(
        tune_kernel, "k", source, 64, [np.zeros(64, kind), a, a[5]], {"block_size_x": [32, 64]}, device="vgpu:a100", quiet=True
    )
    assert {row["verdict"] for row in rows} == {"ok"}
    with pytest.raises(TypeError, match="argument 1 has bytes without fields"):
        run(source, [np.zeros(64, kind), np.void(b"12345678"), a[5]])


def test_a_kernel_may_have_no_parameters():
    source = "__global__ void k(float *o) { o[threadIdx.x] = blockDim.x; }"
    assert (quiet(run, source, [np.zeros(256, np.float32)], size=1, params={})[0] == 256).all()
    rows, _ = quiet(tune_kernel, "k", source, 1, [np.zeros(256, np.float32)], {}, device="vgpu:a100", quiet=True)
    assert [row["verdict"] for row in rows] == ["ok"]


def test_threads_may_write_the_same_value_and_a_warning_says_so():
    source = "__global__ void k(float *o, const float *x) { o[0] = x[0] * 2; }"
    with pytest.warns(RaceWarning, match="k: threads write the same value.*source.cu:1"):
        o = run(source, [np.zeros(1, np.float32), np.ones(1, np.float32)])[0]
    assert o[0] == 2
    with pytest.raises(RuntimeError, match="race"):
        run("__global__ void k(float *o) { o[0] = threadIdx.x; }", [np.zeros(1, np.float32)])
    for answer in ([np.full(1, 2, np.float32), None], None):
        arguments = [np.zeros(1, np.float32), np.ones(1, np.float32)]
        params = {"block_size_x": [32, 64], "bad": [0, 1]}
        with pytest.warns(RaceWarning, match="k: threads write the same value"):
            rows, _ = tune_kernel(
                "k", source.replace("* 2", "* (bad ? threadIdx.x : 2)"), 64, arguments, params, answer=answer,
                device="vgpu:a100", quiet=True,
            )  # fmt: skip
        assert {(row["bad"], row["verdict"]) for row in rows} == {(0, "ok"), (1, "race")}


def test_a_vector_in_constant_memory_is_filled_by_its_elements():
    source = f"__constant__ float2 f[4];\n__global__ void k(float *o) {{ {INDEX} o[i] = f[1].y; }}"
    for shape in ((8,), (4, 2), (6,)):
        values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        assert (run(source, [np.zeros(64, np.float32)], cmem_args={"f": values})[0] == 3).all()
    with pytest.raises(ValueError, match="f in cmem_args has 9 elements and the source declares 8"):
        run(source, [np.zeros(64, np.float32)], cmem_args={"f": np.zeros(9, np.float32)})
    with pytest.raises(TypeError, match="f in cmem_args is not in this machine's byte order"):
        run(source, [np.zeros(64, np.float32)], cmem_args={"f": np.zeros(8, ">f4")})
    with pytest.raises(TypeError, match="f in cmem_args is of type int"):
        run(source, [np.zeros(64, np.float32)], cmem_args={"f": 3})
    with pytest.raises(ValueError, match="g in cmem_args is not a `__constant__` variable of the source"):
        run(source, [np.zeros(64, np.float32)], cmem_args={"g": np.zeros(8, np.float32)})


@pytest.mark.parametrize(
    "source",
    [
        "#define KERNEL extern \"C\" __global__ void\nKERNEL k(float *o, const float *x) { INDEX o[i] = 2 * x[i]; }",
        "#define ARGS float *o, const float *x\n__global__ void k(ARGS) { INDEX o[i] = 2 * x[i]; }",
        "#define DEFINE(T) __global__ void k(T *o, const T *x) { INDEX o[i] = 2 * x[i]; }\nDEFINE(float)",
        '#include "part.cuh"\n// k is there\n',
    ],
)
def test_the_parameters_of_a_kernel_come_from_macros_or_an_included_file(place, source):
    (place / "folder").mkdir()
    (place / "folder/part.cuh").write_text(f"__global__ void k(float *o, const float *x) {{ {INDEX} o[i] = 2 * x[i]; }}")
    x = np.ones(64, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownSignatureWarning)
        o = run(source.replace("INDEX", INDEX), [np.zeros_like(x), x], compiler_options=["-Ifolder"], lang="CUDA")[0]
    assert (o == 2).all()


def test_a_kernel_whose_parameters_are_not_found_has_arrays_as_outputs():
    source = f"#define NAME(x) k##x\n#define BODY {{ {INDEX} o[i] = 2 * x[i]; }}\n__global__ void NAME(2)(float *o, float *x) BODY"
    x = np.ones(64, np.float32)
    with pytest.warns(UnknownSignatureWarning, match="`k2` is not found in the source"):
        o, same = run(source, [np.zeros_like(x), x], name="k2")
    assert (o == 2).all() and (same == 1).all()


TYPED = f"""
__global__ void k(T *o, const T *x, int bytes) {{ {INDEX}
    if (i < bytes / (int)sizeof(T)) o[i] = x[i];
}}"""
TEMPLATE = TYPED.replace("__global__", "template <typename T> __global__")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (TYPED.replace("T ", "CHOSEN "), "k"),
        ("typedef CHOSEN T;" + TYPED, "k"),
        ("using T = CHOSEN;" + TYPED, "k"),
        ("#define T CHOSEN" + TYPED, "k"),
        (TEMPLATE, "k<CHOSEN>"),
    ],
)
def test_a_parameter_may_choose_the_type_of_an_array(source, name):
    x = np.arange(256, dtype=np.float32)
    source = source.replace("sizeof(T)", "sizeof(*o)")
    params = {"block_size_x": [64], "CHOSEN": ["float", "float4", "int", "unsigned int", "double2"]}
    for answer in ([x, None, None], None):
        rows, _ = quiet(
            tune_kernel, name, source, 256, [np.zeros_like(x), x, np.int32(x.nbytes)], params, answer=answer,
            device="vgpu:a100", quiet=True,
        )  # fmt: skip
        assert [(row["verdict"], row.get("detail")) for row in rows] == [("ok", None)] * 5


def test_a_condition_may_choose_the_type_of_an_array():
    x = np.arange(256, dtype=np.uint8)
    source = "#if WIDE == 1\n#define T uchar4\n#else\n#define T unsigned int\n#endif\n" + TYPED
    rows, _ = quiet(
        tune_kernel, "k", source, 64, [np.zeros_like(x), x, np.int32(256)], {"block_size_x": [64], "WIDE": [0, 1]},
        answer=[x, None, None], device="vgpu:a100", quiet=True,
    )  # fmt: skip
    assert [row["verdict"] for row in rows] == ["ok", "ok"]


def test_an_array_of_another_size_is_refused_where_nothing_chooses_the_type():
    source = f"__global__ void k(float *o) {{ {INDEX} o[i] = 1; }}"
    with pytest.raises(TypeError, match=r"argument 0 has the dtype float64 and the parameter is `float \*o`; pass array.astype"):
        run(source, [np.zeros(64, np.float64)])


def test_bits_of_floats_are_passed_to_pointers_of_whole_numbers():
    source = f"__global__ void k(unsigned int *o, const unsigned int *x) {{ {INDEX} o[i] = x[i] ^ 0x80000000; }}"
    x = np.arange(64, dtype=np.float32)
    with pytest.warns(ConvertedArgumentWarning):
        o = run(source, [np.zeros_like(x), x])[0]
    assert o.dtype == x.dtype and (o == -x).all()
    source = f"__global__ void k(void *o, const char *x) {{ {INDEX} ((float *)o)[i] = ((const float *)x)[i]; }}"
    assert (run(source, [np.zeros_like(x), x])[0] == x).all()


def test_bits_of_types_that_numpy_lacks():
    source = f"#include <cuda_bf16.h>\n__global__ void k(T *o, const T *x) {{ {INDEX} o[i] = __hmul(x[i], (T)1.004f); }}"
    x = (np.arange(64, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    answer = x.copy()
    # A unit in the last place is within the tolerance of the type, and not within that of whole numbers.
    answer[1:] += 1
    rows, _ = quiet(
        tune_kernel, "k", source, 64, [np.zeros_like(x), x], {"block_size_x": [32], "T": ["__nv_bfloat16"]},
        answer=[answer, None], atol=1, device="vgpu:a100", quiet=True,
    )  # fmt: skip
    assert [row["verdict"] for row in rows] == ["ok"]


def test_an_include_is_a_source_and_no_file_name():
    from tuner.kernel_tuner import problem

    include = '#include "kernels/sum.cuh"'
    assert problem.read_source(include, {}) == include
    assert problem.looks_like_a_filename("kernels/sum.cu")
