"""Times PyTorch's matrix product (cuBLAS) in float32 for one problem.

Usage: baseline.py < problem.json

Prints {"name", "p50_us", "p90_us"}. The problem is an object of sizes: M, N, K.
"""

import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from torch_timing import normal, report, sample  # noqa: E402


def main() -> None:
    size = json.load(sys.stdin)
    # TF32 would be another operation.
    torch.backends.cuda.matmul.allow_tf32 = False
    a = normal(size["M"], size["K"], dtype=torch.float32, seed=1)
    b = normal(size["K"], size["N"], dtype=torch.float32, seed=2)
    c = torch.empty(size["M"], size["N"], device="cuda")
    report("matmul (cuBLAS, float32)", sample(lambda: torch.matmul(a, b, out=c)))


if __name__ == "__main__":
    main()
