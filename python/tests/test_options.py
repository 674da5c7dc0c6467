"""Compiler options of a script in their spellings."""

import warnings

import pytest
from conftest import SOURCE

from tuner.kernel_tuner import tune_kernel
from tuner.kernel_tuner.spelling import DroppedOptionWarning, compile_options


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["-maxrregcount", "32"], ["--maxrregcount=32"]),
        (["-maxrregcount 32", "--maxrregcount=64"], ["--maxrregcount=32", "--maxrregcount=64"]),
        (["--std", "c++20", "-std=c++11", "-fmad", "false"], ["--std=c++20", "--fmad=false"]),
        (["-D N=4", "-D", "M=5", "--define-macro=T=tile", "-U", "Q"], ["-DN=4", "-DM=5", "-DT={tile}", "-UQ"]),
    ],
)
def test_a_value_may_be_another_word(given, kept):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compile_options(given, {"tile": "tile"}, {"tile": [1]}) == (kept, [])


def test_an_option_that_is_left_out_takes_its_value_along():
    with pytest.warns(DroppedOptionWarning, match="left out: -Xcompiler=-DHOST -arch=sm_80 -O3; "):
        assert compile_options(["-Xcompiler", "-DHOST", "-arch", "sm_80", "-O3", "-DX"], {}, {}) == (["-DX"], [])


def test_a_parameter_may_choose_an_option_or_its_value():
    values = {"regs": [32, 64], "fused": ["true", "false"], "flag": ["-use_fast_math", "-DPLAIN"], "other": ["-O2", "-DX"]}
    names = {name: name for name in values}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = compile_options(["-maxrregcount=regs", "-fmad", "fused", "flag"], names, values)
    assert kept == (["--maxrregcount={regs}", "--fmad={fused}", "{flag}"], [])
    with pytest.warns(DroppedOptionWarning, match="left out: other; "):
        assert compile_options(["other"], names, values) == ([], [])


def test_a_parameter_may_choose_any_standard(place, vectors):
    values = {"standard": ["c++14", "c++17", "c++20"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = compile_options(["-std=standard"], {"standard": "standard"}, values)
    assert kept == (["--std={standard}"], [])
    source = SOURCE + '\nstatic_assert(__cplusplus / 100 == 2000 + STANDARD, "the standard");\n'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, _ = tune_kernel(
            "vector_add", source, 1000, vectors, {"block_size_x": [64], "STANDARD": [14, 17, 20]}, device="vgpu:a100",
            quiet=True, compiler_options=["-std=c++STANDARD"], answer=[vectors[1] + vectors[2], None, None, None],
        )  # fmt: skip
    assert {row["STANDARD"]: row["verdict"] for row in rows} == {14: "ok", 17: "ok", 20: "ok"}


def test_options_of_parameters_reach_the_compiler(place, vectors):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, _ = tune_kernel(
            "vector_add", SOURCE, 1000, vectors, {"block_size_x": [64], "fused": ["false", "perhaps"]}, device="vgpu:a100",
            quiet=True, compiler_options=["-fmad=fused"], answer=[vectors[1] + vectors[2], None, None, None],
        )  # fmt: skip
    assert {row["fused"]: row["verdict"] for row in rows} == {"false": "ok", "perhaps": "compile_failed"}


@pytest.mark.parametrize("options", [["-I inc"], ["-I", "inc"], ["-Iinc"], ["-I=inc"], ["--include-path=inc"], ["--include-path", "inc"]])
def test_each_spelling_names_a_folder_of_includes(place, vectors, options):
    (place / "inc").mkdir()
    (place / "inc/kernel.cuh").write_text(SOURCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, _ = tune_kernel(
            "vector_add", '#include "kernel.cuh"\n', 1000, vectors, {"block_size_x": [64]}, device="vgpu:a100", lang="CUDA",
            quiet=True, compiler_options=options, answer=[vectors[1] + vectors[2], None, None, None],
        )  # fmt: skip
    assert [row["verdict"] for row in rows] == ["ok"]
