"""Sources in files, and the files that they include."""

import warnings

import pytest
from conftest import SOURCE

from tuner.kernel_tuner import tune_kernel

ADD = "__device__ float add(float x, float y) { return x + y; }\n"
CALLING = SOURCE.replace("a[i] + b[i]", "add(a[i], b[i]) + ZERO")


def verdicts(source, vectors, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, _ = tune_kernel(
            "vector_add", source, 1000, vectors, {"block_size_x": [32, 64]}, device="vgpu:a100", quiet=True,
            answer=[vectors[1] + vectors[2], None, None, None], **options,
        )  # fmt: skip
    return [(row["verdict"], row.get("detail")) for row in rows]


@pytest.mark.parametrize(
    ("main", "first", "second"),
    [
        ("main.cu", "one/part.cuh", "two/part.cuh"),
        ("source.cu", "kernel.cu", "reference.cu"),
        ("main.cu", "one/part.cuh", "one/zero.cuh"),
    ],
)
@pytest.mark.parametrize("listed", [True, False])
def test_included_files_are_found_by_their_paths(place, vectors, main, first, second, listed):
    for name, text in ((first, ADD), (second, "#define ZERO 0\n"), (main, f'#include "{first}"\n#include "{second}"\n{CALLING}')):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    names = [main, first, second]
    assert verdicts(names if listed else main, vectors) == [("ok", None)] * 2
    # By absolute paths, from the folder of the source.
    paths = [str(place / name) for name in names]
    assert verdicts(paths if listed else paths[0], vectors) == [("ok", None)] * 2
    if not listed:
        assert verdicts(f'#include "{main}"\n', vectors, lang="CUDA") == [("ok", None)] * 2


def test_a_listed_file_includes_another_one(place, vectors):
    (place / "sub").mkdir()
    (place / "sub/all.cuh").write_text('#include "sub/add.cuh"\n#define ZERO 0\n')
    (place / "sub/add.cuh").write_text(ADD)
    (place / "main.cu").write_text(f'#include "sub/all.cuh"\n{CALLING}')
    assert verdicts(["main.cu", "sub/all.cuh", "sub/add.cuh"], vectors) == [("ok", None)] * 2


def test_a_listed_file_includes_the_one_beside_it(place, vectors):
    for folder, zero in (("one", "1"), ("two", "0")):
        (place / folder).mkdir()
        (place / folder / "zero.cuh").write_text(f"#define ZERO_{folder.upper()} {zero}\n")
        (place / folder / "part.cuh").write_text('#include "zero.cuh"\n')
    main = f'#include "one/part.cuh"\n#include "two/part.cuh"\n#define ZERO (ZERO_TWO + ZERO_ONE - 1)\n{ADD}{CALLING}'
    (place / "main.cu").write_text(main)
    files = ["main.cu", "one/part.cuh", "one/zero.cuh", "two/part.cuh", "two/zero.cuh"]
    assert verdicts(files, vectors) == [("ok", None)] * 2


def test_a_source_that_is_no_text_is_refused_by_name(place, vectors):
    (place / "main.cu").write_bytes(b"// caf\xe9\n" + SOURCE.encode())
    with pytest.raises(ValueError, match="the source main.cu is not text in UTF-8.*convert it"):
        verdicts("main.cu", vectors)


@pytest.mark.parametrize("name", ["kernel.cu", "source_0.cu"])
def test_a_generated_source_may_include_a_file_named_like_one_written_here(place, vectors, name):
    (place / name).write_text(SOURCE)
    assert verdicts(lambda params: f'#include "{name}"\n', vectors, lang="CUDA") == [("ok", None)] * 2


def test_names_that_nvcc_knows_in_every_source(place, vectors):
    uses = "int64_t at = i; uint one = INT_MAX > 0 && INFINITY > M_PI; c[at] = one * (a[i] + b[i]);"
    assert verdicts(SOURCE.replace("c[i] = a[i] + b[i];", f"{{ {uses} }}"), vectors) == [("ok", None)] * 2
    own = "typedef long long int64_t;\nusing uint = unsigned int;\n#define INFINITY 4\n#define M_PI 3\n#define INT_MAX 1\n"
    assert verdicts(own + SOURCE.replace("c[i] = a[i] + b[i];", f"{{ {uses} }}"), vectors) == [("ok", None)] * 2


def test_functions_of_the_host_are_compiled_too(vectors):
    host = "void reference(float *c, const float *a, int n) { for (int i = 0; i < n; i++) c[i] = a[i]; }\n"
    assert verdicts(SOURCE + host, vectors) == [("ok", None)] * 2
    launching = SOURCE + "void call(float *c) { vector_add<<<1, 64>>>(c, c, c, 1); }\n"
    with pytest.warns(UserWarning, match="write it between `#ifndef kernel_tuner` and `#endif`"):
        rows, _ = tune_kernel("vector_add", launching, 1000, vectors, {"block_size_x": [32]}, device="vgpu:a100", quiet=True)
    assert [row["verdict"] for row in rows] == ["compile_failed"]


@pytest.mark.parametrize("given", [False, True])
def test_parameters_under_conditions_are_those_that_are_given(vectors, given):
    source = SOURCE.replace(", int n)", "\n#ifdef WITH_N\n, int n\n#endif\n)").replace("{", "{\n#ifndef WITH_N\nint n = 1000;\n#endif\n", 1)
    arguments = vectors if given else vectors[:3]
    rows, _ = tune_kernel(
        "vector_add", "#define WITH_N\n" * given + source, 1000, arguments, {"block_size_x": [32]}, device="vgpu:a100", quiet=True,
        answer=[vectors[1] + vectors[2], None, None, None][: len(arguments)],
    )  # fmt: skip
    assert [row["verdict"] for row in rows] == ["ok"]


@pytest.mark.parametrize(
    ("before", "store"),
    [
        ("", "auto put = [](float& x, float y) { x = y; }; put(c[i], a[i] + b[i]);"),
        ("struct Put { __device__ void operator()(float& x, float y) const { x = y; } };", "Put put; put(c[i], a[i] + b[i]);"),
        ("#define AT(x, y) x[y]", "AT(c, i) = a[i] + b[i];"),
    ],
)
def test_elements_that_are_written_by_reference_are_outputs(vectors, before, store):
    assert verdicts(before + SOURCE.replace("c[i] = a[i] + b[i];", "{ " + store + " }"), vectors) == [("ok", None)] * 2
