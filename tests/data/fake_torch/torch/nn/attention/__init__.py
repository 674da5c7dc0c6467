"""See torch/__init__.py."""

import contextlib

import torch


class SDPBackend:
    FLASH_ATTENTION = "flash"
    CUDNN_ATTENTION = "cudnn"
    EFFICIENT_ATTENTION = "efficient"
    MATH = "math"


@contextlib.contextmanager
def sdpa_kernel(backend):
    before, torch.backend = torch.backend, backend
    try:
        yield
    finally:
        torch.backend = before
