"""Times PyTorch's scaled_dot_product_attention for one problem.

Usage: baseline.py [f16|bf16] [best|default|flash|cudnn|efficient|math] < problem.json
Prints {"name", "p50_us", "p90_us"}; `best`, which is usual, times every backend that can be forced and
names the fastest. The problem is an object of sizes: B, H, S, T, D, CAUSAL.
"""

import contextlib
import json
import pathlib
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from torch_timing import best, normal, report  # noqa: E402

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


def main() -> None:
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[(sys.argv + ["f16"])[1]]
    wanted = sys.argv[2] if len(sys.argv) > 2 else "best"
    size = json.load(sys.stdin)
    b, h, s, d = size["B"], size["H"], size["S"], size["D"]
    t = size.get("T", s)
    q = normal(b, h, s, d, dtype=dtype, seed=1)
    k = normal(b, h, t, d, dtype=dtype, seed=2)
    v = normal(b, h, t, d, dtype=dtype, seed=3)
    causal = bool(size.get("CAUSAL", 0))
    # PyTorch's is_causal aligns the mask to the first key; ours aligns it to the last.
    mask = causal_lower_right(s, t) if causal and s != t else None

    def launch() -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal and mask is None
        )

    names = list(BACKENDS) if wanted == "best" else [wanted]
    if wanted == "best":
        names.insert(0, "default")
    variants = {
        name: (launch, sdpa_kernel(BACKENDS[name]) if name in BACKENDS else contextlib.nullcontext())
        for name in names
    }
    backend, times = best(variants)
    report(f"SDPA ({backend})", times)


if __name__ == "__main__":
    main()
