"""`tuner.kernel_tuner`: arguments, results, expected values and bad input."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from conftest import SOURCE

import tuner
from tuner.kernel_tuner import interface, limits, run_kernel, runs, tune_kernel, util
from tuner.kernel_tuner.space import UnusedParameterWarning
from tuner.kernel_tuner.verification import VerifyError

PARAMS = {"block_size_x": [64, 128, 256]}
KEYS = {"time", "times", "timestamp", "timing", "verdict", "reference", *util.TIMINGS}


def tune(source, arguments, params=PARAMS, size=1000, name="vector_add", **options):
    """Tunes quietly on a virtual GPU and returns results and environment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tune_kernel(name, source, size, arguments, params, device="vgpu:a100", quiet=True, **options)


def test_results_have_the_keys_of_kernel_tuner_and_state_their_kind(vectors):
    results, env = tune(SOURCE, vectors, metrics={"GB/s": "12000 / time / 1e6", "twice": lambda p: 2 * p["GB/s"]})
    assert sorted(row["block_size_x"] for row in results) == PARAMS["block_size_x"]
    for row in results:
        assert KEYS <= set(row)
        assert (row["timing"], row["verdict"], row["reference"]) == ("predicted", "ok", "first configuration")
        assert row["twice"] == 2 * row["GB/s"] > 0
        assert row["times"] == [row["time"]]
    assert env["best_config"]["time"] == min(row["time"] for row in results)
    assert env["device_name"] == "vgpu:a100"
    json.dumps(results)


def test_without_an_answer_the_first_configuration_is_the_reference_and_a_warning_says_so_once(vectors):
    with pytest.warns(runs.FirstConfigurationWarning, match="pass answer"):
        tune_kernel("vector_add", SOURCE, 1000, vectors, PARAMS, device="vgpu:a100", quiet=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", runs.FirstConfigurationWarning)
        tune_kernel("vector_add", SOURCE, 1000, vectors, PARAMS, device="vgpu:a100", quiet=True)


def test_a_wrong_configuration_is_found_by_the_answer(vectors):
    c, a, b, n = vectors
    source = SOURCE.replace("a[i] + b[i]", "a[i] + b[i] + (block_size_x == 128)")
    results, _ = tune(source, vectors, answer=[a + b, None, None, None])
    verdicts = {row["block_size_x"]: row["verdict"] for row in results}
    assert verdicts == {64: "ok", 128: "incorrect", 256: "ok"}
    wrong = next(row for row in results if row["verdict"] == "incorrect")
    assert isinstance(wrong["__error__"], util.RuntimeFailedConfig) and "time" not in wrong
    assert all(row["reference"] == "answer" for row in results)


def test_a_wrong_configuration_is_found_without_an_answer(vectors):
    source = SOURCE.replace("a[i] + b[i]", "a[i] + b[i] + (block_size_x == 128)")
    results, _ = tune(source, vectors)
    assert {row["block_size_x"]: row["verdict"] for row in results}[128] == "incorrect"


def test_the_first_configuration_with_a_hazard_is_not_the_reference(vectors):
    source = SOURCE.replace("if (i < n)", "if (i < n + (block_size_x == 64) * 9)")
    results, _ = tune(source, vectors)
    verdicts = {row["block_size_x"]: row["verdict"] for row in results}
    assert verdicts == {64: "out_of_bounds", 128: "ok", 256: "ok"}


def test_verify_judges_the_outputs_of_each_configuration(vectors):
    source = """__global__ void part(float *sums, const float *a, int n) {
        __shared__ float all[block_size_x];
        int i = blockIdx.x * block_size_x + threadIdx.x;
        all[threadIdx.x] = i < n ? a[i] : 0.0f;
        __syncthreads();
        if (threadIdx.x == 0) {
            float sum = block_size_x == 128 ? 1.0f : 0.0f;
            for (int k = 0; k < block_size_x; k++) sum += all[k];
            sums[blockIdx.x] = sum;
        }
    }"""
    _, a, _, n = vectors
    seen = []

    def verify(answer, outputs, atol=None):
        seen.append(outputs[0].copy())
        return np.isclose(answer[0], outputs[0].sum())

    sums = np.zeros(16, dtype=np.float32)
    results, _ = tune(source, [sums, a, n], name="part", answer=[a.sum(), None, None], verify=verify)
    # The numbers of partial sums differ, so no configuration's outputs are another's.
    assert {row["block_size_x"]: row["verdict"] for row in results} == {64: "ok", 128: "incorrect", 256: "ok"}
    assert len(seen) == 3 and all(row["reference"] == "verify" for row in results)
    stored = tuner.load_results(limits.database())
    assert {row["config"]["block_size_x"] for row in stored} == {64, 256}


def test_a_kernel_is_run_once(vectors):
    c, a, b, n = vectors
    outputs = run_kernel("vector_add", SOURCE, 1000, vectors, {"block_size_x": 32}, device="vgpu:a100")
    assert np.array_equal(outputs[0], a + b) and not c.any()
    assert outputs[3] == n


def test_a_kernel_with_a_hazard_is_not_run(vectors):
    with pytest.raises(RuntimeError, match="out_of_bounds.*source.cu:4"):
        run_kernel("vector_add", SOURCE.replace("if (i < n) ", ""), 1000, vectors, {"block_size_x": 64}, device="vgpu:a100")


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"])
def test_arrays_of_each_element_type_reach_the_kernel(dtype):
    types = {"float16": "__half", "float64": "double", "bool": "bool"}
    ctype = types.get(dtype, dtype.replace("uint", "unsigned_").replace("int", "signed_"))
    for bits, word in (("8", "char"), ("16", "short"), ("32", "int"), ("64", "long long")):
        ctype = ctype.replace(f"_{bits}", f" {word}")
    source = f"#include <cuda_fp16.h>\n__global__ void copy({ctype} *to, const {ctype} *from) {{ to[threadIdx.x] = from[threadIdx.x]; }}"
    values = np.arange(32).astype(dtype)
    outputs = run_kernel("copy", source, 32, [np.zeros_like(values), values], {"block_size_x": 32}, device="vgpu:a100")
    assert np.array_equal(outputs[0], values)


def test_complex_numbers_are_vectors_of_two():
    source = "__global__ void twice(float2 *z) { z[threadIdx.x].x *= 2; z[threadIdx.x].y *= 3; }"
    values = (np.arange(32) + 1j).astype(np.complex64)
    (out,) = run_kernel("twice", source, 32, [values], {"block_size_x": 32}, device="vgpu:a100")
    assert np.array_equal(out, 2 * values.real + 3j * values.imag)


def test_constant_and_shared_memory_and_the_grid_follow_the_parameters(vectors):
    source = """
    __constant__ float factors[8];
    template <int block> __global__ void scale(float *c, const float *a, int n) {
        extern __shared__ float tile[];
        int i = (blockIdx.x * block + threadIdx.x) * per_thread;
        for (int k = 0; k < per_thread; k++) {
            tile[threadIdx.x] = i + k < n ? a[i + k] : 0.0f;
            if (i + k < n) c[i + k] = tile[threadIdx.x] * factors[1];
        }
    }"""
    c, a, _, n = vectors
    params = {"width": [32, 64], "per_thread": [1, 2, 4]}
    results, _ = tune(
        source, [c, a, n], params, name="scale<width>", size=lambda p: (1000 + p["width"] - p["width"],),
        block_size_names=["width"], grid_div_x=["width", "per_thread"], smem_args={"size": lambda p: 4 * p["width"]},
        cmem_args={"factors": np.array([1, 3], dtype=np.float32)}, answer=[3 * a, None, None],
        restrictions=[lambda p: p["width"] * p["per_thread"] <= 128],
    )  # fmt: skip
    assert len(results) == 5 and {row["verdict"] for row in results} == {"ok"}


def test_definitions_of_the_script_replace_the_macros_of_the_parameters(vectors):
    source = """template <int block_size_x> __global__ void add(float *c, const float *a, const float *b, int n) {
        int i = blockIdx.x * block_size_x + threadIdx.x;
        if (i < n) c[i] = a[i] + TWICE * b[i];
    }"""
    c, a, b, n = vectors
    results, _ = tune(
        source, vectors, name="add<block_size_x>", defines={"TWICE": lambda p: p["block_size_x"] * 2 // p["block_size_x"]},
        answer=[a + 2 * b, None, None, None],
    )
    assert {row["verdict"] for row in results} == {"ok"}


def test_a_source_function_and_unrolling_by_name(vectors):
    def generate(params):
        return SOURCE.replace("block_size_x", str(params["block_size_x"])).replace(
            "if (i < n)", "\n#pragma unroll loop_unroll_factor_0\nfor (int k = 0; k < 2; k++) if (i < n)"
        )

    params = {"block_size_x": [64, 96], "loop_unroll_factor_0": [0, 1, 2]}
    results, _ = tune(generate, vectors, params, lang="CUDA")
    assert len(results) == 6 and {row["verdict"] for row in results} == {"ok"}


@pytest.mark.parametrize(
    "generate",
    [
        lambda p: SOURCE.replace("b[i]", "{factor} * b[i]").replace("{ i", "{{ i").replace("{ c", "{{ c").replace("{factor}", str({**p}["factor"])),
        lambda p: SOURCE.replace("b[i]", f"{[v for n, v in p.items() if n == 'factor'][0]} * b[i]"),
        lambda p: SOURCE.replace("b[i]", f"{p['factor'] if p['block_size_x'] == 128 else dict(p)['factor']} * b[i]"),
    ],
)
def test_a_source_function_may_read_parameters_in_any_way(vectors, generate):
    _, a, b, _ = vectors
    seen = []

    def verify(answer, outputs, atol=None):
        seen.append(round(float(outputs[0][3] - a[3])))
        return True

    params = {"block_size_x": [64, 128, 256], "factor": [1, 2]}
    results, _ = tune(generate, vectors, params, lang="CUDA", verify=verify)
    assert seen == [1, 2, 1, 2, 1, 2] and len(results) == 6


def test_a_source_function_is_called_for_what_it_reads(vectors):
    calls = []

    def generate(p):
        calls.append(p["block_size_x"])
        if p["block_size_x"] == 256 and p["u"] == 9:
            raise OSError("disk")
        return SOURCE.replace("block_size_x", str(p["block_size_x"]))

    params = {"block_size_x": [64, 128, 256], "u": list(range(10))}
    limit = {"strategy": "random_sample", "strategy_options": {"max_fevals": 2}}
    results, _ = tune(generate, vectors, params, lang="CUDA", restrictions=["u < 9"], **limit)
    assert len(results) == 2 and sorted(set(calls)) == [64, 128, 256] and len(calls) < 16
    refused(ValueError, r"the source function raises OSError \(disk\).*'u': 9", vectors, source=generate, params=params, lang="CUDA")


def test_definitions_may_be_formatted_texts(vectors):
    source = SOURCE.replace("block_size_x", "BLOCK")
    results, _ = tune(source, vectors, defines={"BLOCK": lambda p: f"({p['block_size_x']})"})
    assert {row["verdict"] for row in results} == {"ok"}


def test_files_of_sources_are_found_beside_the_first(vectors, place):
    (place / "part.cuh").write_text("#define ADD(x, y) ((x) + (y))\n")
    (place / "main.cu").write_text('#include "part.cuh"\n' + SOURCE.replace("a[i] + b[i]", "ADD(a[i], b[i])"))
    results, _ = tune(["main.cu", "part.cuh"], vectors)
    assert {row["verdict"] for row in results} == {"ok"}


def test_registers_are_added_by_their_observer(vectors):
    from tuner.kernel_tuner.observers.register import RegisterObserver

    metrics = {"registers": lambda p: p["num_regs"], "all": "num_regs * block_size_x"}
    results, _ = tune(SOURCE, vectors, observers=[RegisterObserver()], metrics=metrics, cache="c")
    assert all(row["registers"] == row["num_regs"] > 0 and row["all"] > row["registers"] for row in results)
    again, _ = tune(SOURCE, vectors, observers=[RegisterObserver()], metrics=metrics, cache="c")
    timings = dict.fromkeys(util.TIMINGS)
    assert sorted(str({**row, **timings}) for row in again) == sorted(str({**row, **timings}) for row in results)


def test_an_observer_of_the_script_may_read_the_compiled_kernel(vectors):
    from tuner.kernel_tuner.observers import BenchmarkObserver, ObserverWarning, honoured

    class Registers(BenchmarkObserver):
        def get_results(self):
            return {"count": self.dev.func.num_regs}

    class Timer(BenchmarkObserver):
        def after_finish(self):
            self.count = 1

        def get_results(self):
            return {"mine": 1}

    class Clock(BenchmarkObserver):
        def get_results(self):
            return {"clock": self.dev.current_clock}

    with pytest.warns(ObserverWarning, match="Timer has no effect"):
        assert honoured([Timer()]) == []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results, _ = tune_kernel(
            "vector_add", SOURCE, 1000, vectors, PARAMS, device="vgpu:a100", quiet=True, observers=[Registers(), Timer(), Clock()]
        )
    assert all(row["count"] > 0 and "mine" not in row and "clock" not in row for row in results)
    # Once, and not for each configuration.
    found = [warning for warning in caught if issubclass(warning.category, ObserverWarning)]
    assert len(found) == 1 and "Clock" in str(found[0].message) and found[0].filename == __file__


def test_a_metric_that_raises_is_named(vectors):
    refused(ValueError, "the metric twice raises NameError.*correct it", vectors, metrics={"twice": "nope * 2"})
    refused(ValueError, "the metric twice raises KeyError", vectors, metrics={"twice": lambda p: p["nope"]})


def test_strategies_and_limits(vectors):
    params = {"block_size_x": list(range(32, 1025, 32))}
    for strategy in ("random_sample", "genetic_algorithm", "mls", "simulated_annealing", "diff_evo", "bayes_opt"):
        results, _ = tune(SOURCE, vectors, params, strategy=strategy, strategy_options={"max_fevals": 3})
        assert len(results) == 3, strategy
    with pytest.raises(ValueError, match="unknown strategy nonsense"):
        tune(SOURCE, vectors, strategy="nonsense")


def test_an_exported_space_is_an_ordinary_one(vectors, place):
    _, a, b, _ = vectors
    results, env = tune(SOURCE, vectors, answer=[a + b, None, None, None], export_space="out")
    assert results == [] and env == {"export_space": "out"}
    rows = tuner.check("out/space.yaml", device="vgpu:a100")
    assert {row["verdict"] for row in rows} == {"ok"}
    assert not (place / "results.db").exists()


def refused(error, match, arguments, **options):
    source = options.pop("source", SOURCE)
    with pytest.raises(error, match=match):
        tune(source, arguments, **options)


def test_bad_arguments_say_what_to_do(vectors):
    c, a, b, n = vectors
    refused(ValueError, "argument 1 is not contiguous.*ascontiguousarray", [c, np.tile(a, 2)[::2], b, n])
    large = np.zeros(4 << 30, np.uint8)  # Its pages are never touched.
    refused(ValueError, "argument 0 has 4096 MiB.*smaller problem", [large, a, b, n])
    refused(TypeError, "argument 0 has the dtype object.*astype", [c.astype(object), a, b, n])
    refused(TypeError, "argument 3 is of type int.*numpy.int32", [c, a, b, 1000])
    refused(TypeError, "argument 0 is a scalar.*pass an array", [n, a, b, n])
    refused(ValueError, "takes 4 arguments.*3 are given", [c, a, b])
    refused(ValueError, "`vector_sub` is not in the source: it defines vector_add", vectors, name="vector_sub")
    refused(TypeError, "answer has 1 elements and there are 4", vectors, answer=[a])
    refused(TypeError, "element 0 of answer has 7 elements and the argument has 1000", vectors, answer=[a[:7], None, None, None])
    refused(TypeError, "element 0 of answer has 1 elements", vectors, answer=[np.float64(1), None, None, None])
    refused(ValueError, "no configuration satisfies", vectors, restrictions=["block_size_x > 5000"])
    refused(ValueError, "raises NameError.*correct it", vectors, restrictions=["block_size_x > unknown"])
    refused(ValueError, "has no values", vectors, params={"block_size_x": []})
    refused(TypeError, r"values of block_size_x are 64; give a list, such as \[64\]", vectors, params={"block_size_x": 64})
    refused(ValueError, "True and 1 of q are the same macro", vectors, params={"block_size_x": [64], "q": [True, 1]})
    refused(ValueError, "'1' and 1 of q are the same macro", vectors, params={"block_size_x": [64], "q": ["1", 1]})
    refused(TypeError, "value None of q is neither", vectors, params={"block_size_x": [64], "q": [None]})
    refused(TypeError, "element 0 of answer is no array of numbers", vectors, answer=[[[1], [1, 2]], None, None, None])
    refused(ValueError, "kernel_name is empty", vectors, name=" ")
    refused(ValueError, "problem_size raises NameError.*correct it", vectors, size="nope * 2")
    refused(ValueError, "grid_div raises NameError.*correct it", vectors, grid_div_x=["nope"])
    refused(ValueError, "f in cmem_args is not a `__constant__` variable", vectors, cmem_args={"f": a})
    refused(ValueError, "forbidden name", vectors, params={"block_size_x": [64], "time": [1]})
    refused(FileNotFoundError, "correct kernel_source", vectors, source="missing.cu")


def test_what_is_not_supported_is_refused_by_name(vectors):
    refused(NotImplementedError, "texmem_args", vectors, texmem_args={"tex": vectors[1]})
    refused(NotImplementedError, "host code", vectors, lang="C")
    refused(NotImplementedError, "'OpenCL'", vectors, lang="OpenCL")
    refused(NotImplementedError, "__global__", vectors, source="__kernel void f() {}")
    refused(TypeError, "pass lang='CUDA'", vectors, source=lambda params: SOURCE)
    from tuner.kernel_tuner.observers.nvml import NVMLObserver

    with pytest.raises(NotImplementedError, match="NVMLObserver.*--objective time,energy"):
        NVMLObserver(["nvml_energy"])


def test_an_unused_parameter_is_warned_of(vectors):
    with pytest.warns(UnusedParameterWarning, match="tile is used neither"):
        tune_kernel(
            "vector_add", SOURCE, 1000, vectors, {"block_size_x": [64], "tile": [1, 2]}, device="vgpu:a100", quiet=True
        )


def test_a_verify_that_fails_is_named_and_the_database_keeps_what_was_judged(vectors):
    answer = [vectors[1] + vectors[2], None, None, None]
    refused(VerifyError, "verify returned None for .*return True or False", vectors, answer=answer, verify=lambda x, y: None)
    refused(VerifyError, "verify returned an array .*numpy.allclose", vectors, answer=answer, verify=lambda x, y: x[0] == y[0])

    calls = []

    def verify(answer, outputs, atol=None):
        calls.append(1)
        if len(calls) > 1:
            raise OSError("disk")
        return True

    refused(VerifyError, r"verify raised OSError \(disk\).*stored in the database", vectors, answer=answer, verify=verify)
    assert len(tuner.load_results(limits.database())) == 1


def test_a_script_runs_unchanged_in_the_place_of_kernel_tuner(place):
    (place / "script.py").write_text(
        "import sys, numpy as np, kernel_tuner, cupy as cp\n"
        "from kernel_tuner import tune_kernel, run_kernel\n"
        "from kernel_tuner.file_utils import store_output_file, store_metadata_file\n"
        "from kernel_tuner.util import get_best_config\n"
        "import kernel_tuner.observers.register\n"
        f"source = '''{SOURCE}'''\n"
        "a = cp.ones(1000).astype(cp.float32)\n"
        "params = {'block_size_x': [64, 128, 256]}\n"
        "arguments = [np.zeros_like(a), a, a, np.int32(1000)]\n"
        "results, env = tune_kernel('vector_add', source, 1000, arguments, params, strategy=kernel_tuner.strategies.minimize)\n"
        "store_output_file('t4.json', results, params)\n"
        "store_metadata_file('metadata.json')\n"
        "kernel_tuner.store_results('best.json', 'vector_add', source, params, 1000, results, env)\n"
        "kernel_tuner.create_device_targets('best.h', 'best.json')\n"
        "print('ended', len(results), sys.argv[1:], get_best_config(results, 'time')['block_size_x'])\n"
    )
    words = [sys.executable, "-m", "tuner.kernel_tuner", "--evals", "2", "--device", "vgpu:l4", "--summary", "s.jsonl"]
    import os

    environment = {**os.environ, "PYTHONPATH": str(__import__("pathlib").Path(tuner.__file__).parents[1])}
    done = subprocess.run([*words, "script.py", "x"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "ended 2 ['x']" in done.stdout
    assert (json.loads((place / "s.jsonl").read_text())["trials"]) == 2
    assert len(json.loads((place / "t4.json").read_text())["results"]) == 2
    assert "TARGET_vgpu_l4" in (place / "best.h").read_text()
    (place / "other.py").write_text("import kernel_tuner.backends.hip\n")
    done = subprocess.run([*words, "other.py"], capture_output=True, text=True, env=environment)
    assert "`kernel_tuner.backends` is not offered" in done.stderr


def test_names_of_kernel_tuner_are_there_or_say_why_not(vectors, place):
    import tuner.kernel_tuner as package
    from tuner.kernel_tuner import drop_in, file_utils
    from tuner.kernel_tuner.observers import amd, nvml

    assert package.accuracy.TunablePrecision and package.searchspace.Searchspace and package.kernelbuilder.PythonKernel
    assert "mls" in interface.strategy_map and "pso" in interface.strategy_map
    results, _ = tune(SOURCE, vectors, strategy=interface.strategy_map["mls"], strategy_options={"max_fevals": 2})
    assert len(results) == 2
    absent = (package.tune_kernel_T1, file_utils.output_file_schema, nvml.get_nvml_gr_clocks, amd.AMDSMIObserver)
    for missing in absent:
        with pytest.raises(NotImplementedError):
            missing("x")
    (place / "t1.json").write_text('{"General": {}}')
    with pytest.raises(ValueError, match="has no ConfigurationSpace, KernelSpecification"):
        file_utils.get_input_file(place / "t1.json")
    assert file_utils.get_input_file(place / "t1.json", validate=False) == {"General": {}}
    whole = {"ConfigurationSpace": {}, "KernelSpecification": {}}
    (place / "t1.json").write_text(json.dumps(whole))
    assert file_utils.get_input_file(place / "t1.json") == whole
    finder = drop_in._Finder()
    for name in drop_in._MISSING:
        with pytest.raises(ModuleNotFoundError, match="not offered by tuner.kernel_tuner: "):
            finder.create_module(finder.find_spec(f"kernel_tuner.{name}"))


def test_the_environment_has_the_times_of_the_parts(vectors):
    with pytest.warns(runs.IgnoredArgumentWarning, match="iterations has no effect"):
        results, env = tune_kernel("vector_add", SOURCE, 1000, vectors, PARAMS, device="vgpu:a100", quiet=True, cache="c", iterations=3)
    total = sum(env[f"total_{name}"] for name in util.TIMINGS)
    assert total > 0 and env["overhead_time"] > 0
    simulated, env = tune(SOURCE, vectors, cache="c", simulation_mode=True)
    assert env["simulated_time"] == sum(row["benchmark_time"] for row in simulated) == env["total_benchmark_time"] > 0


def test_a_kernel_is_a_function_and_device_arrays_change_in_place(vectors):
    from tuner.kernel_tuner.kernelbuilder import PythonKernel

    c, a, b, n = vectors
    kernel = PythonKernel(
        "vector_add", SOURCE, 1000, vectors, {"block_size_x": 64}, inputs=[False, True, True, True],
        outputs=[True, False, False, False], device="vgpu:a100",
    )  # fmt: skip
    (result,) = kernel(c, a, 2 * b, n)
    assert np.array_equal(result, a + 2 * b) and not c.any()
    kernel = PythonKernel("vector_add", SOURCE, 1000, vectors, {"block_size_x": 64}, device="vgpu:a100", lang="cupy")
    kernel(c, a, b, n)
    assert np.array_equal(c, a + b)


def test_the_first_results_are_written_to_a_summary_and_limited_by_the_environment(vectors, place, monkeypatch):
    monkeypatch.setenv("TUNER_KERNEL_TUNER_EVALS", "1")
    monkeypatch.setenv("TUNER_KERNEL_TUNER_SUMMARY", str(place / "s.jsonl"))
    results, _ = tune(SOURCE, vectors)
    assert [row["block_size_x"] for row in results] == [64], "the first configuration comes first"
    (line,) = (place / "s.jsonl").read_text().splitlines()
    assert json.loads(line)["verdicts"] == {"ok": 1}


def test_a_simulation_takes_values_that_are_equal_to_python(vectors, place):
    params = {"block_size_x": [64], "mixed": [1, True, "t"]}
    rows = {f"64,{value}": {"block_size_x": 64, "mixed": value, "time": at + 1.0} for at, value in enumerate((1, True, "t"))}
    head = {"device_name": "D", "kernel_name": "vector_add", "tune_params_keys": list(params), "tune_params": params}
    (place / "c.json").write_text(json.dumps({**head, "cache": rows}))
    results, _ = tune(SOURCE, vectors, params, cache="c", simulation_mode=True)
    assert sorted(row["time"] for row in results) == [1, 2, 3]


def test_a_kernel_without_a_result_is_refused(vectors):
    source = SOURCE.replace("c[i] = a[i] + b[i]", "float sum = a[i] + b[i]")
    with pytest.raises(ValueError, match="vector_add writes to none of its arguments"):
        tune_kernel("vector_add", source, 1000, vectors, {"block_size_x": [64]}, quiet=True)


def test_warnings_name_the_line_of_the_script(vectors):
    with pytest.warns(runs.PredictedTimeWarning) as caught:
        tune_kernel("vector_add", SOURCE, 1000, vectors, {"block_size_x": [64]}, device="vgpu:a100", quiet=True)
    assert {warning.filename for warning in caught} == {__file__}


def test_the_program_chooses_the_first_device():
    assert [interface.device_name(device) for device in (0, "0", np.int32(0))] == ["auto"] * 3
    assert [interface.device_name(device) for device in (1, "2", "vgpu:l4")] == ["cuda:1", "cuda:2", "vgpu:l4"]
