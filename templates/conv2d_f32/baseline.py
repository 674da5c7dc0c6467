"""Times PyTorch's conv2d (cuDNN) in float32 for one problem.

Usage: baseline.py < problem.json

Prints {"name", "p50_us", "p90_us"}. The problem is an object of sizes: HEIGHT, WIDTH, FILTER_HEIGHT,
FILTER_WIDTH.
"""

import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from torch_timing import normal, report, sample  # noqa: E402


def main() -> None:
    size = json.load(sys.stdin)
    rows, columns = size["FILTER_HEIGHT"], size["FILTER_WIDTH"]
    # TF32 would be another operation; the fastest algorithm is looked for once.
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    height, width = size["HEIGHT"] + rows - 1, size["WIDTH"] + columns - 1
    x = normal(1, 1, height, width, dtype=torch.float32, seed=1)
    weights = normal(1, 1, rows, columns, dtype=torch.float32, seed=2)
    report("conv2d (cuDNN, float32)", sample(lambda: torch.nn.functional.conv2d(x, weights)))


if __name__ == "__main__":
    main()
