"""The program `tuner` as a child process."""

from __future__ import annotations

import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from typing import Any, Callable, Deque, Dict, IO, List, Optional, Sequence

from ._errors import BusyError, TunerError, error_from
from ._text import visible

#: Event of a run: a JSON object with the key `event` (docs/daemon.md lists them).
Event = Dict[str, Any]

INTERRUPTED = 130
NONE_PASSED = 3
_TAIL_LINES = 400
_running = threading.Lock()
# Process that holds `_running`: a fork copies the lock and not the thread that releases it.
_running_in: Optional[int] = None


def find_program() -> str:
    """Returns the path of the program: `TUNER`, the scripts installed with this package, in this environment and by
    the user, then `PATH`."""
    named = os.environ.get("TUNER")
    if named:
        if not os.access(named, os.X_OK):
            raise TunerError(f"TUNER={named} is not a program; set it to the path of `tuner`, or unset it")
        return named
    # `pip install --target FOLDER` and `pip install --user` have scripts of their own.
    folders = [str(Path(__file__).resolve().parents[1] / "bin"), sysconfig.get_path("scripts")]
    folders += [os.path.join(sys.prefix, "bin"), sysconfig.get_path("scripts", f"{os.name}_user")]
    for folder in folders:
        candidate = Path(folder) / "tuner"
        if os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which("tuner")
    if found is None:
        raise TunerError(
            "the program `tuner` is not installed in this environment; type `pip install "
            "./python` in a checkout of tuner, or set TUNER to the program's path"
        )
    return found


def run_program(
    arguments: Sequence[str],
    *,
    accepted: Sequence[int] = (0,),
    stdin: Optional[str] = None,
    cwd: Optional[str] = None,
) -> str:
    """Runs a command to its end and returns its standard output.

    Raises :class:`TunerError` for an exit code that is not accepted.
    """
    try:
        done = subprocess.run(
            [find_program(), *arguments],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            cwd=cwd,
            check=False,
        )
    except OSError as error:
        raise TunerError(f"cannot start `tuner`: {error}") from error
    if done.returncode not in accepted:
        raise error_from(done.stderr, done.returncode)
    return done.stdout


def run_json(arguments: Sequence[str], **options: Any) -> List[Dict[str, Any]]:
    """Runs a command with `--format json` and returns its rows."""
    text = run_program([*arguments, "--format", "json"], **options)
    rows = _parsed(text) if text.strip() else []
    if not isinstance(rows, list):
        raise TunerError("`tuner` wrote JSON that is not a list; its version differs from this package's")
    return rows


def _parsed(text: str) -> Any:
    """Reads what the program wrote as JSON."""
    try:
        return json.loads(text)
    except ValueError as error:
        begin = visible(text.strip())[:80]
        raise TunerError(
            f"`tuner` wrote no JSON but `{begin}`; remove options such as --help, --version or --format"
        ) from error


class EventStream:
    """A run whose events arrive as JSON lines.

    Ctrl-C ends the run: the program finishes what it judges, stores it and exits; a second Ctrl-C
    stops it at once.
    """

    def __init__(self, arguments: Sequence[str], cwd: Optional[str] = None) -> None:
        self._arguments = list(arguments)
        self._cwd = cwd
        self._tail: Deque[str] = collections.deque(maxlen=_TAIL_LINES)
        #: The run was interrupted; what it had judged is stored.
        self.interrupted = False

    def follow(self, on_event: Callable[[Event], None]) -> int:
        """Passes each event to `on_event` and returns the exit code (0, 3 or 130)."""
        _begin()
        try:
            return self._follow(on_event)
        finally:
            _end()

    def _follow(self, on_event: Callable[[Event], None]) -> int:
        try:
            # A session of its own: a Ctrl-C of the terminal reaches Python, which passes it on once.
            child = subprocess.Popen(
                [find_program(), *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                cwd=self._cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise TunerError(f"cannot start `tuner`: {error}") from error
        assert child.stdout is not None and child.stderr is not None
        reader = threading.Thread(target=self._drain, args=(child.stderr,), daemon=True)
        reader.start()
        try:
            self._read(child, child.stdout, on_event)
            code = child.wait()
        except BaseException:
            # An exception of a callback, or the second Ctrl-C.
            child.kill()
            child.wait()
            raise
        finally:
            reader.join(timeout=5)
            child.stdout.close()
            child.stderr.close()
        if code not in (0, NONE_PASSED, INTERRUPTED):
            raise error_from("\n".join(self._tail), code)
        self.interrupted |= code == INTERRUPTED
        return code

    def _read(
        self, child: "subprocess.Popen[str]", lines: IO[str], on_event: Callable[[Event], None]
    ) -> None:
        while True:
            try:
                for line in lines:
                    on_event(_parsed(line))
                return
            except KeyboardInterrupt:
                if self.interrupted:
                    raise
                self.interrupted = True
                child.send_signal(signal.SIGINT)

    def _drain(self, stderr: IO[str]) -> None:
        try:
            for line in stderr:
                self._tail.append(line.rstrip("\n"))
        except ValueError:
            # The pipe was closed: the run has ended.
            return


def _begin() -> None:
    global _running_in
    if _running_in is not None and _running_in != os.getpid():
        raise BusyError(
            "this process was forked during a run; start it with "
            "multiprocessing.get_context('spawn'), or fork before the run"
        )
    if not _running.acquire(blocking=False):
        raise BusyError(
            "a run is in progress in this process; wait until it ends, or hand both to a daemon "
            "with `tuner serve` and `tuner submit`"
        )
    _running_in = os.getpid()


def _end() -> None:
    global _running_in
    _running_in = None
    _running.release()
