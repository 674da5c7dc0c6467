"""Expected values: answers that leave outputs out, and the first configuration that works."""

import warnings

import numpy as np
import pytest

from tuner.kernel_tuner import run_kernel, runs, signature, tune_kernel
from tuner.kernel_tuner.verification import PartialResultsWarning

SIZE = 512
KERNEL = """__global__ void twice(float *o, const float *x, int n) {{
    {extra}
    int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) o[i] = x[i] * 2;
}}"""
WORKSPACE = """__global__ void sums(float *out, float *partial, const float *x, int n) {
    __shared__ float s[block_size_x];
    int i = blockIdx.x * block_size_x + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int k = 0; k < block_size_x; k++) sum += s[k];
        BODY
    }
    if (i < n) out[i] = x[i] * 2.0f;
}"""


def tune(name, source, arguments, params=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        params = params or {"block_size_x": [32, 64, 128]}
        return tune_kernel(name, source, SIZE, arguments, params, device="vgpu:a100", quiet=True, **options)[0]


def verdicts(rows):
    return {row["block_size_x"]: row["verdict"] for row in rows}


@pytest.fixture
def x():
    return np.arange(1, SIZE + 1, dtype=np.float32)


@pytest.mark.parametrize(
    ("extra", "verdict", "options"),
    [
        ("\n#if block_size_x == 32\n#error no\n#endif\n", "compile_failed", {}),
        ("if (block_size_x == 32) o[n + threadIdx.x] = 1;", "out_of_bounds", {}),
        ("if (block_size_x == 32) o[0] = threadIdx.x;", "race", {}),
        (
            "extern __shared__ float d[]; if (n < 0) o[0] = d[0];", "launch_failed",
            {"smem_args": {"size": "300000 if block_size_x == 32 else 1024"}},
        ),
        (
            "if (block_size_x == 32) { int j = blockIdx.x * 32 + threadIdx.x; if (j < n) o[j] = nanf(\"\"); return; }",
            "incorrect", {},
        ),
    ],
)  # fmt: skip
def test_a_first_configuration_that_fails_is_not_the_reference(x, place, extra, verdict, options):
    arguments = [np.zeros_like(x), x, np.int32(SIZE)]
    rows = tune("twice", KERNEL.format(extra=extra), arguments, cache="c", **options)
    assert verdicts(rows) == {32: verdict, 64: "ok", 128: "ok"}
    # Results that another reference refused are not in the file.
    assert verdicts(tune("twice", KERNEL.format(extra=extra), arguments, cache="c", **options)) == verdicts(rows)


def test_a_first_configuration_with_which_no_other_one_agrees_is_not_the_reference(x):
    extra = "if (block_size_x == 32) n--;"
    arguments = [np.zeros_like(x), x, np.int32(SIZE)]
    wrong_first = {32: "incorrect", 64: "ok", 128: "ok"}
    assert verdicts(tune("twice", KERNEL.format(extra=extra), arguments)) == wrong_first
    # Of two configurations that differ, and of several that all do, the first one counts.
    rows = tune("twice", KERNEL.format(extra=extra), arguments, {"block_size_x": [32, 64]})
    assert verdicts(rows) == {32: "ok", 64: "incorrect"}
    rows = tune("twice", KERNEL.format(extra="n -= block_size_x / 32;"), arguments, {"block_size_x": [32, 64, 96, 128, 160]})
    assert verdicts(rows) == {32: "ok", 64: "incorrect", 96: "incorrect", 128: "incorrect", 160: "incorrect"}
    assert verdicts(tune("twice", KERNEL.format(extra=""), arguments, {"block_size_x": [32]})) == {32: "ok"}


def test_a_reference_is_found_among_many_configurations_that_fail(x):
    extra = "\n#if block_size_x == 32\n#error no\n#endif\n"
    params = {"block_size_x": [32, 64], "unused": list(range(20))}
    rows = tune(
        "twice", KERNEL.format(extra=extra), [np.zeros_like(x), x, np.int32(SIZE)], params, strategy="random_sample",
        strategy_options={"max_fevals": 6},
    )  # fmt: skip
    assert {(row["block_size_x"], row["verdict"]) for row in rows} == {(32, "compile_failed"), (64, "ok")}


def test_a_kernel_of_which_nothing_works_has_the_reason_of_each_configuration(x):
    extra = "float t[block_size_x - 200]; o[0] = t[0];"
    rows = tune("twice", KERNEL.format(extra=extra), [np.zeros_like(x), x, np.int32(SIZE)])
    assert len(rows) == 3 and all(row["verdict"] == "compile_failed" and "t" in row["detail"] for row in rows)
    assert all("reference" not in row["detail"] for row in rows)


def test_outputs_that_the_answer_leaves_out_are_not_compared(x):
    source = WORKSPACE.replace("BODY", "partial[blockIdx.x] = sum;")
    arguments = [np.zeros_like(x), np.zeros(SIZE // 32, np.float32), x, np.int32(SIZE)]
    answer = [2 * x, None, None, None]
    # Numbers and values of partial sums differ between configurations.
    assert verdicts(tune("sums", source, arguments, answer=answer)) == {32: "ok", 64: "ok", 128: "ok"}
    assert verdicts(tune("sums", source, arguments, answer=[x, None, None, None])) == dict.fromkeys((32, 64, 128), "incorrect")


def test_an_output_that_is_left_out_may_be_read_before_it_is_written(x):
    source = WORKSPACE.replace("BODY", "atomicAdd(partial, sum);")
    arguments = [np.zeros_like(x), np.zeros(1, np.float32), x, np.int32(SIZE)]
    rows = tune("sums", source, arguments, answer=[2 * x, None, None, None])
    assert verdicts(rows) == {32: "ok", 64: "ok", 128: "ok"}


def test_pointers_that_are_only_stored_through():
    source = """__device__ void f(float *p);
    __global__ void k(float *a, float *b, float *c, float *d, float *e) {
        a[0] = 1; if (b[0] == 1) b[0] = 2; c[0] += 1; f(d); { e[threadIdx.x * 2] = a ? 1 : 2; }
        for (;;) e[1] = 3;
    }"""
    found = {each.name: each.overwritten for each in signature.parameters_of(source, "k")}
    assert found == {"a": False, "b": False, "c": False, "d": False, "e": True}


def test_a_space_is_exported_without_an_answer_to_a_relative_folder(x, place):
    rows = tune("twice", KERNEL.format(extra=""), [np.zeros_like(x), x, np.int32(SIZE)], export_space="out")
    assert rows == [] and (place / "out/space.yaml").is_file() and not (place / "out/one.yaml").exists()
    with pytest.raises(Exception, match="none of the configurations of twice that were tried"):
        tune("twice", KERNEL.format(extra="bad"), [np.zeros_like(x), x, np.int32(SIZE)], export_space="out")


def test_the_reason_of_a_failure_is_shown_once_and_in_the_result(x, capsys):
    source = KERNEL.format(extra="\n#if block_size_x > 32\n#error no luck\n#endif\n")
    arguments, answer = [np.zeros_like(x), x, np.int32(SIZE)], [2 * x, None, None]
    params = {"block_size_x": [32, 64, 128]}
    rows, _ = tune_kernel("twice", source, SIZE, arguments, params, answer=answer, device="vgpu:a100")
    printed = capsys.readouterr().out
    assert printed.count("compile_failed: source.cu(4): catastrophic error: #error directive: no luck") == 1
    assert {row["block_size_x"]: row.get("detail", "") for row in rows}[128].endswith("no luck")
    tune_kernel("twice", source, SIZE, arguments, params, answer=answer, device="vgpu:a100", verbose=True)
    assert capsys.readouterr().out.count("no luck") == 2


def test_a_warning_has_the_reasons_if_nothing_passed(x):
    arguments = [np.zeros_like(x), x, np.int32(SIZE)]
    with pytest.warns(runs.FailedConfigurationsWarning, match=r"none of 2 configurations of twice passed: compile_failed: .*bad"):
        tune_kernel(
            "twice", KERNEL.format(extra="bad;"), SIZE, arguments, {"block_size_x": [32, 64]}, device="vgpu:a100", quiet=True
        )


PARTIAL = """
__global__ void partial(float *sums, const float *x, int n) {
    __shared__ float parts[block_size_x];
    int i = blockIdx.x * block_size_x + threadIdx.x;
    parts[threadIdx.x] = i < n ? x[i] : 0;
    for (int step = block_size_x / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) parts[threadIdx.x] += parts[threadIdx.x + step];
    }
    if (threadIdx.x == 0 && (WRONG == 0 || blockIdx.x < gridDim.x - 1)) sums[blockIdx.x] = parts[0];
}
"""


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_partial_results_are_compared_by_their_sums(dtype):
    x = np.arange(1, 1025).astype(dtype)
    params = {"block_size_x": [64, 128, 256], "WRONG": [0, 1]}
    arguments = [np.zeros(16, dtype), x, np.int32(x.size)]
    source = PARTIAL if dtype is np.float32 else PARTIAL.replace("float", "int")
    with pytest.warns(PartialResultsWarning, match="partial writes partial results"):
        rows, _ = tune_kernel(
            "partial", source, 1024, arguments, params, device="vgpu:a100", quiet=True,
            restrictions=["WRONG == 0 or block_size_x == 256"],
        )  # fmt: skip
    found = {(row["block_size_x"], row["WRONG"]): row["verdict"] for row in rows}
    assert found == {(64, 0): "ok", (128, 0): "ok", (256, 0): "ok", (256, 1): "incorrect"}
    assert {row["reference"] for row in rows} == {"sums of the first configuration"}
    assert all(row["time"] > 0 for row in rows if row["verdict"] == "ok")


def test_outputs_of_the_same_extent_are_no_partial_results():
    x = np.arange(1, 1025, dtype=np.float32)
    source = "__global__ void k(float *o, const float *x) { int i = blockIdx.x * block_size_x + threadIdx.x; o[i] = x[FLIP ? 1023 - i : i]; }"
    rows, _ = tune_kernel(
        "k", source, 1024, [np.zeros_like(x), x], {"block_size_x": [64], "FLIP": [0, 1]}, device="vgpu:a100", quiet=True
    )
    assert [(row["verdict"], row["reference"]) for row in rows] == [("ok", "first configuration"), ("incorrect", "first configuration")]


@pytest.mark.parametrize("included", [False, True])
def test_the_order_of_atomics_is_no_fault_of_a_kernel(place, included):
    source = """__global__ void total(float *sum, const float *a, int n) {
        int i = blockIdx.x * block_size_x + threadIdx.x;
        if (i < n) atomicAdd(sum, a[i]);
    }"""
    if included:
        (place / "total.cuh").write_text(source)
        source = '#include "total.cuh"'
    a = np.random.default_rng(1).random(3000, dtype=np.float32) * np.float32(1000)
    arguments = [np.zeros(1, np.float32), a, np.int32(3000)]
    options = {"lang": "CUDA", "device": "vgpu:a100", "quiet": True}
    (total, *_) = run_kernel("total", source, 3000, arguments, {"block_size_x": 64}, **options)
    assert np.isclose(total[0], a.sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for more in ({"verify": lambda answer, outputs: np.isclose(outputs[0][0], a.sum())}, {}):
            results, _ = tune_kernel("total", source, 3000, arguments, {"block_size_x": [64, 128]}, **more, **options)
            assert [row["verdict"] for row in results] == ["ok", "ok"]
