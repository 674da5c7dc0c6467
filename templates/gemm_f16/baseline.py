"""Times PyTorch's matrix product (cuBLAS) for one problem.

Usage: baseline.py [f16|bf16] < problem.json
Prints {"name", "p50_us", "p90_us"}. The problem is an object of sizes: M, N, K.
"""

import json
import sys

import torch

SAMPLES = 60
SAMPLE_MS = 1.5  # Long enough for the resolution of CUDA events.


def main() -> None:
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[(sys.argv + ["f16"])[1]]
    size = json.load(sys.stdin)
    # Sums in float32, as in ours.
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    generator = torch.Generator(device="cuda").manual_seed(42)
    a = torch.randn(size["M"], size["K"], device="cuda", dtype=dtype, generator=generator)
    b = torch.randn(size["K"], size["N"], device="cuda", dtype=dtype, generator=generator)
    c = torch.empty(size["M"], size["N"], device="cuda", dtype=dtype)
    times = sorted(sample(lambda: torch.matmul(a, b, out=c)))
    print(
        json.dumps(
            {
                "name": f"PyTorch {torch.__version__} matmul (cuBLAS)",
                "p50_us": times[len(times) // 2],
                "p90_us": times[int(len(times) * 0.9)],
            }
        )
    )


def sample(launch) -> list[float]:
    """Microseconds a launch: each sample replays a graph of enough launches to last SAMPLE_MS."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(5):
            launch()
        stream.synchronize()
        once = elapsed_ms(launch, stream)
        count = max(1, min(500, int(SAMPLE_MS / max(once, 1e-3))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(count):
                launch()
        for _ in range(10):
            graph.replay()
        return [elapsed_ms(graph.replay, stream) * 1e3 / count for _ in range(SAMPLES)]


def elapsed_ms(work, stream: torch.cuda.Stream) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record(stream)
    work()
    end.record(stream)
    end.synchronize()
    return start.elapsed_time(end)


if __name__ == "__main__":
    main()
