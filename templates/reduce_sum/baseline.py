"""Times PyTorch's sum along rows for one problem.

Usage: baseline.py < problem.json

Prints {"name", "p50_us", "p90_us"}. The problem is an object of sizes: R, N.
"""

import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from torch_timing import normal, report, sample  # noqa: E402


def main() -> None:
    size = json.load(sys.stdin)
    x = normal(size["R"], size["N"], dtype=torch.float32, seed=1)
    y = torch.empty(size["R"], device="cuda")
    report("sum", sample(lambda: torch.sum(x, dim=1, out=y)))


if __name__ == "__main__":
    main()
