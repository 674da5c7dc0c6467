"""Calls of a script's `verify` function."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Optional


class VerifyError(RuntimeError):
    """The `verify` function raised an exception or returned nothing."""


def call_verify(
    verify: Optional[Callable[..., Any]],
    answer: Optional[List[Any]],
    outputs: List[Any],
    atol: float,
    params: Mapping[str, Any],
) -> bool:
    """Passes the outputs of a configuration to `verify` and returns its answer."""
    assert verify is not None
    try:
        correct = verify(answer, outputs, atol=atol)
    except Exception as error:
        raise VerifyError(
            f"verify raised {type(error).__name__} ({error}) for {dict(params)}; correct it. What was judged before "
            "is stored in the database"
        ) from error
    if correct is None:
        raise VerifyError(f"verify returned None for {dict(params)}; return True or False")
    if getattr(correct, "size", 1) != 1:
        raise VerifyError(f"verify returned an array for {dict(params)}; return True or False, such as numpy.allclose(...)")
    return bool(correct)
