"""Shared pieces of the tests."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

SOURCE = """
__global__ void vector_add(float *c, const float *a, const float *b, int n) {
    int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A working folder and a database of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TUNER_KERNEL_TUNER_DB", str(tmp_path / "results.db"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path


@pytest.fixture(autouse=True)
def told():
    """Forgets the warnings that were given once."""
    from tuner.kernel_tuner import notices

    notices._told.clear()


@pytest.fixture
def vectors():
    """Arguments of `vector_add`."""
    import numpy as np

    size = 1000
    a = np.arange(size, dtype=np.float32)
    b = np.ones(size, dtype=np.float32)
    return [np.zeros_like(a), a, b, np.int32(size)]


@pytest.fixture
def program():
    """Path of the program."""
    import tuner

    return tuner.find_program()


SPACE = """version: 1
kernel: vector_add
source: kernel.cu
problems: { p: { n: 1000 } }
sizes: argument
parameters:
  block_size_x: { values: [64, 128, 256] }
arguments:
  - { name: c, type: f32, role: output, shape: [n] }
  - { name: a, type: f32, role: input, shape: [n] }
  - { name: b, type: f32, role: input, shape: [n] }
  - { name: n, type: i32, role: scalar, value: n }
launches:
  - { entry: vector_add, grid: ["ceil_div(n, block_size_x)"], block: [block_size_x] }
reference: { source: kernel.cu, entry: vector_add, grid: ["ceil_div(n, block_size_x)"], block: [block_size_x] }
"""


@pytest.fixture
def space(place):
    """A search space in the working folder."""
    (place / "kernel.cu").write_text(SOURCE)
    (place / "space.yaml").write_text(SPACE)
    return place / "space.yaml"
