"""Parameters in problem sizes, grids, shared memory, metrics and restrictions, as scripts spell them."""

import warnings

import numpy as np
import pytest
from conftest import SOURCE

from tuner.kernel_tuner import tune_kernel, util

TILED = """__global__ void vector_add(float *c, const float *a, const float *b, int n) {
    for (int t = 0; t < tile; t++) {
        int i = (blockIdx.x * block_size_x + threadIdx.x) * tile + t;
        if (i < n) c[i] = a[i] + b[i];
    }
}"""


def tune(source, arguments, params, size=1000, **options):
    options.setdefault("answer", [arguments[1] + arguments[2], None, None, None])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tune_kernel("vector_add", source, size, arguments, params, device="vgpu:a100", quiet=True, **options)[0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"grid_div_x": ["block_size_x"], "size": "500 * f"},
        {"grid_div_x": ["block_size_x * f"], "size": 2000},
        {"smem_args": {"size": "block_size_x * f * 4"}},
    ],
)
def test_a_value_that_is_the_text_of_a_number_counts_as_it(vectors, options):
    rows = tune(SOURCE, vectors, {"block_size_x": ["32", "64"], "f": ["2"]}, metrics={"m": "block_size_x * 2"}, **options)
    assert {row["block_size_x"]: (row["verdict"], row["m"]) for row in rows} == {"32": ("ok", 64), "64": ("ok", 128)}


def test_the_grid_counts_with_texts_of_numbers(vectors):
    rows = tune(SOURCE, vectors, {"block_size_x": [32], "f": ["1", "2"]}, grid_div_x=["block_size_x * f"])
    assert {row["f"]: row["verdict"] for row in rows} == {"1": "ok", "2": "incorrect"}
    assert util.get_grid_dimensions([64, 1, 1], {"x": "4", "f": "2"}, (["x * f"], [], []), ["x", "y", "z"]) == (8, 1, 1)


def test_a_function_of_the_problem_size_may_return_texts(vectors):
    params = {"block_size_x": [32, 64], "tile": [1, 2]}
    rows = tune(TILED, vectors, params, size=lambda p: ("1000 / tile", 1))
    assert [row["verdict"] for row in rows] == ["ok"] * 4
    rows = tune(SOURCE, vectors, {"block_size_x": [32], "f": [1, 2]}, size=lambda p: "1000 / f")
    assert {row["f"]: row["verdict"] for row in rows} == {1: "ok", 2: "incorrect"}


@pytest.mark.parametrize("kind", [list, tuple, set, np.array])
def test_divisors_are_any_iterable(vectors, kind):
    rows = tune(TILED, vectors, {"block_size_x": [32], "tile": [1, 2]}, grid_div_x=kind(["block_size_x", "tile"]))
    assert [row["verdict"] for row in rows] == ["ok", "ok"]


def test_a_tuple_of_restrictions_has_all_of_them(vectors):
    params = {"block_size_x": [32, 64], "tile": [1, 2]}
    left = [(32, 2)]
    for rules in (
        ("tile == 2", "block_size_x == 32"),
        (lambda p: p["tile"] == 2, lambda p: p["block_size_x"] == 32),
        ("tile == 2", lambda p: p["block_size_x"] == 32, "tile > 0"),
        ("tile * block_size_x == 64 and tile == 2", ["tile", "block_size_x"]),
    ):
        rows = tune(TILED, vectors, params, grid_div_x=["block_size_x", "tile"], restrictions=rules)
        assert [(row["block_size_x"], row["tile"]) for row in rows] == left


def test_the_source_may_define_a_size_of_the_block_that_is_no_parameter(vectors):
    source = "#define block_size_x 256\n#define block_size_y 1\n" + SOURCE
    assert [row["verdict"] for row in tune(source, vectors, {"tile": [1]})] == ["ok"]
    guarded = "#ifndef block_size_x\n#define block_size_x 1\n#endif\n" + SOURCE
    assert [row["verdict"] for row in tune(guarded, vectors, {"tile": [1]})] == ["ok"]


def test_blocks_that_are_too_large_are_no_fault_of_restrictions(vectors):
    with pytest.raises(ValueError, match=r"at most 1024 threads in a block \(block_size_x \* block_size_y\); add smaller"):
        tune(SOURCE, vectors, {"block_size_x": [64], "block_size_y": [32]})
