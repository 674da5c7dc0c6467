"""A stand-in for PyTorch with a host and a device that have times of their own, for tests of
templates/torch_timing.py. Dispatch from Python takes 12 us, a replay 15 us, a matrix product 20 us.
"""

import os

__version__ = "0.0"
float16, float32, bfloat16 = "float16", "float32", "bfloat16"
Tensor = dtype = object
backend = None

DISPATCH_US, REPLAY_US, SLOW_REPLAY_US = 12.0, 15.0, float(os.environ.get("FAKE_REPLAY_US", "15"))
host = device = 0.0
recording = None
spins = []


def kernel(us):
    """A launch from Python."""
    global host
    if recording is not None:
        recording.append(us)
        return
    host += DISPATCH_US
    run(us)


def run(us):
    global device
    device = max(device, host) + us


def matmul(a, b, out=None):
    kernel(20.0)


def softmax(x, dim, out=None):
    kernel(float(os.environ.get("FAKE_KERNEL_US", "5")))


class Numbers:
    def __rmul__(self, other):
        return self


def randn(*shape, **_):
    return Numbers()


def empty(*shape, **_):
    return Numbers()


def empty_like(x):
    return Numbers()


class Generator:
    def __init__(self, device):
        pass

    def manual_seed(self, seed):
        return self


class cuda:  # noqa: N801
    class Stream:
        def synchronize(self):
            global host
            host = max(host, device)

    class Event:
        def __init__(self, enable_timing):
            self.at = None

        def record(self, stream):
            self.at = max(device, host)

        def query(self):
            return self.at <= host

        def synchronize(self):
            global host
            host = max(host, self.at)

        def elapsed_time(self, other):
            return (other.at - self.at) / 1e3

    class CUDAGraph:
        def __init__(self):
            self.kernels = []

        def replay(self):
            global host
            host += SLOW_REPLAY_US
            for us in self.kernels:
                run(us)

    class stream:  # noqa: N801
        def __init__(self, stream):
            pass

        def __enter__(self):
            pass

        def __exit__(self, *_):
            pass

    class graph:  # noqa: N801
        def __init__(self, graph, stream=None):
            self.into = graph

        def __enter__(self):
            global recording
            recording = self.into.kernels

        def __exit__(self, *_):
            global recording
            recording = None

    @staticmethod
    def _sleep(cycles):
        spins.append(cycles)
        run(cycles / 2000)

from . import nn  # noqa: E402,F401
