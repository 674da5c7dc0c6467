"""Exceptions of the package, and their construction from messages of the program."""

from __future__ import annotations

import re
from typing import Optional

from ._text import visible

_PLACE = re.compile(
    # Lazy: a path may have a colon.
    r"^(?:error: )?(?P<file>.+?):(?P<line>\d+)(?::(?P<column>\d+))?: (?:error: )?(?P<message>.*)$",
    re.MULTILINE,
)

_MESSAGE = re.compile(r"^(?:.+:\d+: )?error: ", re.MULTILINE)


class TunerError(Exception):
    """Failure of the tuner, with its message and, if the program reports one, its position."""

    def __init__(
        self,
        message: str,
        *,
        file: Optional[str] = None,
        line: Optional[int] = None,
        column: Optional[int] = None,
        exit_code: Optional[int] = None,
    ) -> None:
        super().__init__(message)
        #: Text of the message, with the source line and the advice.
        self.message = message
        #: File that the message is about.
        self.file = file
        #: Line in it, from 1.
        self.line = line
        #: Column in it, from 1.
        self.column = column
        #: Exit code of the program.
        self.exit_code = exit_code


class InputError(TunerError):
    """Bad usage or a bad input file (exit code 2)."""


class BusyError(TunerError):
    """A second run in a process that has one, or a run in a forked process."""


def error_from(stderr: str, exit_code: int) -> TunerError:
    """Builds the exception of an exit code and of what the program wrote to standard error."""
    text = _without_progress(stderr)
    begin = _MESSAGE.search(text)
    # What the run said before it failed is not part of the message.
    text = text[begin.start() :] if begin else text
    found = _PLACE.search(text)
    kind = InputError if exit_code == 2 else TunerError
    if not text:
        text = f"tuner ended with exit code {exit_code} and no message; run `tuner doctor`"
    if found is None:
        return kind(text, exit_code=exit_code)
    column = found["column"]
    return kind(
        text[found.start() :].strip(),
        file=found["file"],
        line=int(found["line"]),
        column=int(column) if column else None,
        exit_code=exit_code,
    )


def _without_progress(stderr: str) -> str:
    """Returns the text without terminal control sequences and overwritten lines."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stderr)
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.splitlines()]
    return visible("\n".join(line for line in lines if line).strip(), keep="\n\t")
