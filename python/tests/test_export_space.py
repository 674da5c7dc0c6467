"""`export_space`: the files of a search space beside those of a user, and the names of problems."""

import warnings

import numpy as np
import pytest
from conftest import SOURCE

import tuner
from tuner.kernel_tuner import limits, tune_kernel


def tune(source, arguments, size=1000, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tune_kernel(
            "vector_add", source, size, arguments, {"block_size_x": [64, 128]}, device="vgpu:a100", quiet=True, **options
        )


def contents(place):
    return {file.name: file.read_bytes() for file in place.iterdir() if file.is_file()}


@pytest.mark.parametrize("name", ["kernel.cu", "source.cu", "reference.cu", "space.yaml", "argument_0.npy"])
def test_no_file_of_the_user_is_overwritten(vectors, place, name):
    (place / name).write_text(SOURCE)
    before = contents(place)
    with pytest.raises(ValueError, match=f"export_space would overwrite .*{name}.*; name"):
        tune(name if name.endswith(".cu") else SOURCE, vectors, export_space=".")
    assert contents(place) == before


def test_folders_and_other_files_of_the_user_stay(vectors, place):
    (place / "outputs").mkdir()
    (place / "outputs/precious").write_text("x")
    (place / "one.yaml").write_text("mine")
    tune(SOURCE, vectors, export_space=place)
    assert (place / "outputs/precious").read_text() == "x" and (place / "one.yaml").read_text() == "mine"
    assert {row["verdict"] for row in tuner.check(place / "space.yaml", device="vgpu:a100")} == {"ok"}


def test_an_exported_space_is_replaced_by_another_one_but_no_source(vectors, place):
    tune(SOURCE, vectors, export_space="out")
    tune(SOURCE.replace("a[i] + b[i]", "a[i] - b[i]"), vectors, export_space="out")
    assert "a[i] - b[i]" in (place / "out/source.cu").read_text()
    before = contents(place / "out")
    with pytest.raises(ValueError, match="a source of vector_add; name another folder"):
        tune("out/source.cu", vectors, export_space="out")
    assert contents(place / "out") == before
    (place / "file").write_text("")
    with pytest.raises(ValueError, match="file is a file; name a folder"):
        tune(SOURCE, vectors, export_space="file")


def test_an_included_file_is_not_overwritten(vectors, place):
    (place / "out").mkdir()
    (place / "out/source.cu").write_text(SOURCE)
    (place / "out/space.yaml").write_text("# Written by tuner.kernel_tuner.\n")
    with pytest.raises(ValueError, match="a source of vector_add"):
        tune('#include "out/source.cu"\n', vectors, export_space="out", lang="CUDA")
    assert (place / "out/source.cu").read_text() == SOURCE


def test_problems_of_other_sizes_have_other_names_and_keep_their_results(vectors):
    a = np.arange(2000, dtype=np.float32)
    tune(SOURCE, vectors)
    tune(SOURCE, [np.zeros_like(a), a, a, np.int32(2000)], 2000)
    tune(SOURCE, [np.zeros_like(a), a, a, np.int32(1000)], 2000)
    tune(SOURCE, vectors)
    rows = tuner.load_results(limits.database())
    assert len(rows) == 6 and len({row["problem"] for row in rows}) == 3
    assert {row["problem"].rsplit("_", 1)[0] for row in rows} == {"script_1000", "script_2000"}
