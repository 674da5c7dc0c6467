"""Calls of a script's `verify` function, and the comparison of partial results without one."""

from __future__ import annotations

import hashlib
import inspect
import math
import numbers
from typing import Any, Callable, List, Mapping, Optional

import numpy as np

# Units in the last place by which sums of partial results may differ, of the sum of their absolute values.
_SUM_ULPS = 256
_DIGEST_DIGITS = 8


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
    found = np.asarray(correct) if hasattr(correct, "__array__") else correct
    if getattr(found, "size", 1) != 1:
        raise VerifyError(f"verify returned an array for {dict(params)}; return True or False, such as numpy.allclose(...)")
    found = found.item() if isinstance(found, (np.ndarray, np.generic)) else found
    if not isinstance(found, (bool, numbers.Real)):
        what = "None" if found is None else f"{found!r:.80}"
        raise VerifyError(f"verify returned {what} for {dict(params)}; return True or False")
    if isinstance(found, float) and math.isnan(found):
        raise VerifyError(f"verify returned NaN for {dict(params)}; return True or False")
    return bool(found)


def identity_of(verify: Optional[Callable[..., Any]], answer: Optional[List[Any]]) -> str:
    """Returns a digest of a `verify` function with the data that it compares with: its answer, and the arrays and
    numbers that it takes from the script."""
    try:
        named = inspect.getclosurevars(inspect.unwrap(verify)) if verify is not None else None
        source = inspect.getsource(verify) if verify is not None else ""
    except (OSError, TypeError, ValueError):
        # A function that was made at an interactive prompt, or an object that is called.
        named, source = None, ""
    taken = {**named.globals, **named.nonlocals} if named is not None else {}
    digest = hashlib.sha256(source.encode())
    for value in [*(answer or ()), *(taken[name] for name in sorted(taken))]:
        if isinstance(value, (np.ndarray, np.generic)):
            digest.update(str((value.dtype, value.shape)).encode() + value.tobytes())
        elif isinstance(value, (bool, int, float, str)):
            digest.update(repr(value).encode())
    return digest.hexdigest()[:_DIGEST_DIGITS]


class PartialResultsWarning(UserWarning):
    """The outputs of a kernel are partial results, whose sums are compared."""


def are_partial_results(before: Mapping[int, Any], first: Mapping[int, Any], other: Mapping[int, Any]) -> bool:
    """Reports whether two configurations wrote partial results: as a sum for each block, whose number depends on the
    configuration. Their sums agree, and in an output that differs they have another number of elements.

    :param before: contents of the outputs before the run
    """
    differing = [place for place in first if first[place].tobytes() != other[place].tobytes()]
    extents = [(_extent(before[place], first[place]), _extent(before[place], other[place])) for place in differing]
    return bool(differing) and all(one != two for one, two in extents) and sums_agree(before, first, other)


def sums_agree(before: Mapping[int, Any], first: Mapping[int, Any], other: Mapping[int, Any]) -> bool:
    """Reports whether the sum of what was written to each output agrees with that of the first configuration."""
    return all(_agree(before[place], first[place], other[place]) for place in first)


def _extent(before: Any, after: Any) -> int:
    """Returns the number of elements up to the last one that was changed."""
    changed = np.flatnonzero(_changed(before, after))
    return int(changed[-1]) + 1 if changed.size else 0


def _changed(before: Any, after: Any) -> Any:
    return np.ravel(before, order="K") != np.ravel(after, order="K")


def _agree(before: Any, first: Any, other: Any) -> bool:
    if first.tobytes() == other.tobytes():
        return True
    if first.dtype.kind not in "iuf":
        return False
    one, two = (np.ravel(after, order="K")[_changed(before, after)] for after in (first, other))
    if first.dtype.kind in "iu":
        return bool(sum(one.tolist()) == sum(two.tolist()))
    one, two = one.astype(np.float64), two.astype(np.float64)
    bound = _SUM_ULPS * float(np.finfo(first.dtype).eps) * float(np.abs(one).sum())
    return bool(np.abs(one.sum() - two.sum()) <= bound)
