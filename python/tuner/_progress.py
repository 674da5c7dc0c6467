"""Progress bar of a run, where tqdm is installed."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Optional, Type

from ._program import Event


class Progress:
    """A bar that counts configurations and shows the best time; nothing without tqdm."""

    def __init__(self, wanted: Optional[bool], total: Optional[int]) -> None:
        self._bar: Any = None
        if wanted is False:
            return
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            if wanted:
                raise ImportError("progress=True needs tqdm; type `pip install tqdm`") from error
            return
        self._bar = tqdm(total=total, unit="cfg")

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, event: Event) -> None:
        """Counts a trial and shows the best time so far."""
        if self._bar is None or event.get("event") != "trial":
            return
        self._bar.update(1)
        best = event.get("best_us")
        if best is not None:
            self._bar.set_postfix_str(f"best {best:.3f} us {event.get('timing') or ''}".rstrip())
