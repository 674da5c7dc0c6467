"""Times PyTorch's scaled_dot_product_attention for one problem.

Usage: baseline.py [f16|bf16] [default|flash|cudnn|efficient|math] < problem.json
Prints {"name", "p50_us", "p90_us"}. The problem is an object of sizes: B, H, S, T, D, CAUSAL.
"""

import json
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}
SAMPLES = 60
SAMPLE_MS = 1.5  # Long enough for the resolution of CUDA events.


def main() -> None:
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[(sys.argv + ["f16"])[1]]
    backend = (sys.argv + ["f16", "default"])[2] if len(sys.argv) > 2 else "default"
    size = json.load(sys.stdin)
    b, h, s, d = size["B"], size["H"], size["S"], size["D"]
    t = size.get("T", s)
    generator = torch.Generator(device="cuda").manual_seed(42)

    def normal(rows: int) -> torch.Tensor:
        return torch.randn(b, h, rows, d, device="cuda", dtype=dtype, generator=generator)

    q, k, v = normal(s), normal(t), normal(t)
    causal = bool(size.get("CAUSAL", 0))
    # PyTorch's is_causal aligns the mask to the first key; ours aligns it to the last.
    mask = causal_lower_right(s, t) if causal and s != t else None

    def launch() -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal and mask is None
        )

    def timed() -> list[float]:
        return sample(launch)

    if backend == "default":
        times = timed()
    else:
        with sdpa_kernel(BACKENDS[backend]):
            times = timed()
    times.sort()
    print(
        json.dumps(
            {
                "name": f"PyTorch {torch.__version__} SDPA ({backend})",
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
