"""See torch/__init__.py."""

import torch


def scaled_dot_product_attention(q, k, v, attn_mask=None, is_causal=False):
    backend = torch.backend or "flash"
    if backend == "cudnn":
        raise RuntimeError("cuDNN attention is not there\nand more")
    torch.kernel({"flash": 6.0, "efficient": 5.0, "math": 40.0}[backend])
