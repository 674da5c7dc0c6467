"""Registers the custom op of a kernel. Written by `tuner export --torch`."""

from __future__ import annotations

from typing import Any, Callable

import torch

from ._runtime import Kernel

# An op lives as long as its library.
LIBRARIES: list[torch.library.Library] = []


def register(kernel: Kernel, namespace: str, op: str) -> Callable[..., Any]:
    """Registers the custom op with its fake function, and returns the callable."""
    library = torch.library.Library(namespace, "FRAGMENT")
    library.define(f"{op}{kernel.schema()}", tags=(torch.Tag.pt2_compliant_tag,))
    registered = getattr(getattr(torch.ops, namespace), op)

    def differentiable(*arguments: Any) -> Any:
        needs = [one for one in arguments if isinstance(one, torch.Tensor) and one.requires_grad]
        if torch.is_grad_enabled() and needs:
            if kernel.fallback_code is None:
                raise RuntimeError(f"{kernel.name} has no gradient; call it under torch.no_grad()")
            return kernel.fallback(*arguments)
        with torch._C._AutoDispatchBelowAutograd():
            return registered(*arguments)

    library.impl(op, kernel.launch, "CUDA")
    library.impl(op, kernel.fallback, "CPU")
    library.impl(op, differentiable, "Autograd")
    torch.library.register_fake(f"{namespace}::{op}", kernel.fake, lib=library)
    LIBRARIES.append(library)
    return registered
