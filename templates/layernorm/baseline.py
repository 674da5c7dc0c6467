"""Times PyTorch's layer_norm for one problem.

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
    rows, columns = size["R"], size["N"]
    x = normal(rows, columns, dtype=torch.float16, seed=1)
    gamma = normal(columns, dtype=torch.float16, seed=2)
    beta = normal(columns, dtype=torch.float16, seed=3)
    layer_norm = torch.nn.functional.layer_norm
    report("layer_norm", sample(lambda: layer_norm(x, (columns,), gamma, beta)))


if __name__ == "__main__":
    main()
