"""Times PyTorch's matrix product (cuBLAS) for one problem.

Usage: baseline.py [f16|bf16] < problem.json

Prints {"name", "p50_us", "p90_us"}. The problem is an object of sizes: M, N, K.
"""

import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from torch_timing import normal, report, sample  # noqa: E402


def main() -> None:
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[(sys.argv + ["f16"])[1]]
    size = json.load(sys.stdin)
    # Sums in float32, as in ours.
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    a = normal(size["M"], size["K"], dtype=dtype, seed=1)
    b = normal(size["K"], size["N"], dtype=dtype, seed=2)
    c = torch.empty(size["M"], size["N"], device="cuda", dtype=dtype)
    report("matmul (cuBLAS)", sample(lambda: torch.matmul(a, b, out=c)))


if __name__ == "__main__":
    main()
