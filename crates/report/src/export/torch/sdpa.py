

def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **more):
    """Drop-in for `torch.nn.functional.scaled_dot_product_attention`; what the kernel lacks goes to PyTorch."""
    same = query.dim() == key.dim() == value.dim() == 4 and query.shape[:2] == key.shape[:2]
    same = same and key.shape == value.shape and query.shape[-1] == key.shape[-1]
    # The kernel's mask ends at the last key of the last query, PyTorch's begins at the first of both.
    square = same and (not is_causal or (query.shape[2] == key.shape[2] and "CAUSAL" in kernel.free))
    plain = square and attn_mask is None and dropout_p == 0.0 and scale is None and not any(more.values())
    needs = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
    if not plain or needs or query.device.type != "cuda" or query.dtype != _DTYPE or not _IS_DROP_IN:
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale, **more
        )
    return op(query.contiguous(), key.contiguous(), value.contiguous(), *([int(is_causal)] if kernel.free else []))


def _is_drop_in():
    """Whether the op has PyTorch's scale, and no argument that the call cannot know."""
    names = kernel.names(kernel.variants[0], kernel.variants[0].sizes)
    if names is None or kernel.scalars or len(kernel.inputs) != 3 or set(kernel.free) - {"CAUSAL"}:
        return False
    depth = kernel.value(kernel.inputs[0]["shape"][-1], names)
    scales = [kernel.value(one["value"], names) for one in kernel.arguments if one["name"] == "scale" and one["role"] == "scalar"]
    return all(abs(scale * depth**0.5 - 1) < 1e-4 for scale in scales)


_IS_DROP_IN = _is_drop_in()
