"""Python interface of `tuner`, an auto-tuner for CUDA kernels.

The functions start the program `tuner` and read its JSON; the program does all the work.
`tuner.kernel_tuner` offers the interface of Kernel Tuner.

    import tuner
    results = tuner.tune("conv2d_f32", device="vgpu:a100", evals=40)
    results.best["config"]
"""

from __future__ import annotations

import csv
import io
import math
import numbers
import os
from importlib import metadata
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from ._errors import BusyError, InputError, TunerError
from ._program import Event, EventStream, find_program, run_json
from ._progress import Progress
from ._results import Results
from ._text import visible

__all__ = [
    "BusyError",
    "InputError",
    "Results",
    "TunerError",
    "check",
    "find_program",
    "load_results",
    "predict",
    "tune",
]

try:
    __version__ = metadata.version("tuner")
except metadata.PackageNotFoundError:
    __version__ = "0+unknown"

#: A kernel's name, or the path of a search space.
Kernel = Union[str, "os.PathLike[str]"]
#: Values of parameters.
Config = Mapping[str, Any]


def tune(
    kernel_or_space: Optional[Kernel] = None,
    *,
    device: str = "auto",
    budget: Optional[Union[str, float]] = None,
    evals: Optional[int] = None,
    problem: Optional[str] = None,
    strategy: Optional[str] = None,
    seed: Optional[int] = None,
    db: Optional[Kernel] = None,
    options: Sequence[str] = (),
    on_event: Optional[Callable[[Event], None]] = None,
    progress: Optional[bool] = None,
    cwd: Optional[Kernel] = None,
) -> Results:
    """Tunes a kernel (`tuner run`) and returns its results.

    Ctrl-C ends the run and returns the results until then, with `interrupted` set; a second Ctrl-C
    raises KeyboardInterrupt.

    :param kernel_or_space: name of a kernel, or path of a search space; None only for a `replay` device,
        whose file is the kernel
    :param device: `auto`, `cuda`, `cuda:N`, `vgpu:NAME` or `replay:FILE`
    :param budget: wall time, as text such as `90s` or `2h` or as a number of seconds
    :param evals: largest number of configurations
    :param problem: the only problem to tune
    :param strategy: search strategy
    :param seed: random seed
    :param db: database of results
    :param options: further options of `tuner run`
    :param on_event: called with each event, a dict with the key `event`
    :param progress: show a progress bar of tqdm; by default if tqdm is installed
    :param cwd: folder in which the program runs
    :raises InputError: bad usage or a bad file, with `file`, `line` and `column`
    :raises TunerError: the tuner failed
    """
    arguments = ["run", *_operands(kernel_or_space, device), f"--device={device}", "--events", "-"]
    named = {"budget": _duration(budget), "evals": _count(evals), "problem": problem, "strategy": strategy, "seed": seed}
    named["db"] = None if db is None else os.fspath(db)
    arguments += _options(named)
    arguments += _listed(options)
    stream = EventStream(arguments, cwd=None if cwd is None else os.fspath(cwd))
    rows: List[Dict[str, Any]] = []
    started: Event = {}
    finished: Event = {}
    with Progress(progress, evals) as bar:

        def receive(event: Event) -> None:
            kind = event.get("event")
            if kind == "trial":
                rows.append({name: value for name, value in event.items() if name != "event"})
            elif kind == "run_started":
                started.update(event)
            elif kind == "run_finished":
                finished.update(event)
            bar.update(event)
            if on_event is not None:
                on_event(event)

        stream.follow(receive)
    return Results(
        rows,
        run_id=started.get("run_id"),
        device=started.get("device"),
        reason=finished.get("reason"),
        interrupted=stream.interrupted,
        verdicts=finished.get("verdicts"),
    )


def check(
    kernel_or_space: Kernel,
    *,
    configs: Sequence[Config] = (),
    sample: Optional[int] = None,
    problem: Optional[str] = None,
    device: Optional[str] = None,
    seed: Optional[int] = None,
    options: Sequence[str] = (),
    cwd: Optional[Kernel] = None,
) -> List[Dict[str, Any]]:
    """Checks a kernel without a GPU (`tuner check`) and returns one dict for each configuration and problem.

    :param configs: configurations to check; omitted parameters take their default
    :param sample: number of random pairs of a configuration and a problem
    :param problem: the only problem to check
    :param device: `vgpu:NAME` or `cuda:N`
    :raises InputError: bad usage or a bad file
    """
    arguments = ["check", _operand(kernel_or_space)]
    for config in _checked(configs):
        arguments.append(f"--config={format_config(config)}")
    arguments += _options({"sample": sample, "problem": problem, "device": device, "seed": seed})
    return run_json(
        [*arguments, *_listed(options)], accepted=(0, 4), cwd=None if cwd is None else os.fspath(cwd)
    )


def predict(
    kernel_or_space: Kernel,
    *,
    configs: Optional[Union[Kernel, Sequence[Config]]] = None,
    device: str = "vgpu:h100",
    problem: Optional[str] = None,
    options: Sequence[str] = (),
    cwd: Optional[Kernel] = None,
) -> List[Dict[str, Any]]:
    """Predicts times on a GPU that need not be present (`tuner predict`).

    :param configs: configurations, or the path of a CSV file or Kernel Tuner cache; by default the
        default configuration and the seeds
    :param device: `vgpu:NAME`
    :param problem: problem; by default the first
    :raises InputError: bad usage or a bad file
    """
    arguments = ["predict", _operand(kernel_or_space), f"--device={device}"]
    arguments += _options({"problem": problem})
    stdin = None
    if isinstance(configs, (str, os.PathLike)):
        arguments.append(f"--configs={os.fspath(configs)}")
    elif configs is not None:
        arguments += ["--configs", "-"]
        stdin = _csv(_checked(configs))
    return run_json(
        [*arguments, *_listed(options)], stdin=stdin, cwd=None if cwd is None else os.fspath(cwd)
    )


def load_results(
    db: Optional[Kernel] = None,
    *,
    kernel: Optional[str] = None,
    device: Optional[str] = None,
    problem: Optional[str] = None,
    top: Optional[int] = None,
) -> Results:
    """Returns the ranked results of a database (`tuner leaderboard`), best first.

    :param db: database; by default `leaderboard/tuner.db` of the project
    :param kernel: the only kernel
    :param device: the only device
    :param problem: the only problem
    :param top: number of results for each kernel, problem and device
    """
    arguments = ["leaderboard"] + ([_operand(kernel)] if kernel else [])
    database = None if db is None else os.fspath(db)
    if database is not None and not os.path.isfile(database):
        raise InputError(f"{database}: no such database; `tuner run --db FILE` makes one", file=database)
    rows = run_json(
        [*arguments, *_options({"db": database, "device": device, "problem": problem, "top": top})]
    )
    for row in rows:
        row["time_us"] = row.get("time_us_p50")
        row["verdict"] = "ok"
    devices = {row.get("device") for row in rows}
    return Results(rows, device=str(devices.pop()) if len(devices) == 1 else None, ranked=True)


def format_config(config: Config) -> str:
    """Formats values as `--config` takes them."""
    for name, value in config.items():
        # A comma and an equals sign begin the next parameter.
        if set(",=") & set(name) or any("=" in part for part in _spelled(value).split(",")[1:]):
            raise InputError(f"{visible(name)[:80]}={visible(value)[:80]} cannot be written as a configuration")
    return ",".join(f"{name}={_spelled(value)}" for name, value in config.items()) or "default"


def _spelled(value: Any) -> str:
    # A scalar of NumPy.
    value = value.item() if hasattr(value, "item") else value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _options(named: Mapping[str, Any]) -> List[str]:
    # One word each: a value that begins with a hyphen is not another option.
    return [f"--{name}={value}" for name, value in named.items() if value is not None]


def _count(evals: Optional[int]) -> Optional[int]:
    """Returns a number of configurations; raises InputError if it is none."""
    if evals is not None and (isinstance(evals, bool) or not isinstance(evals, numbers.Integral)):
        raise InputError(f"evals is {evals!r:.80}; give a whole number from 1, or None for no limit")
    return evals


def _duration(budget: Optional[Union[str, float]]) -> Optional[str]:
    """Returns a budget as the program takes it."""
    # Numbers of NumPy are among them.
    if not isinstance(budget, numbers.Real):
        return None if budget is None else str(budget)
    seconds = float(budget)
    if not 0 < seconds < math.inf:
        raise InputError(f"budget is {budget}; give a positive number of seconds, or None for no limit")
    return f"{max(1, round(seconds))}s"


def _listed(options: Sequence[str]) -> List[str]:
    if isinstance(options, (str, bytes)):
        raise InputError(f"options is the text {visible(options)[:80]!r}; give a list with each word of it")
    return list(options)


def _checked(configs: Sequence[Config]) -> List[Config]:
    """Returns configurations; raises InputError if they are no list of dicts."""
    if isinstance(configs, Mapping):
        raise InputError("configs is a dict; give a list of configurations, such as [config]")
    for config in configs:
        if not isinstance(config, Mapping):
            raise InputError(f"configs has a {type(config).__name__}; each configuration is a dict of values by parameter")
    return list(configs)


def _operands(kernel: Optional[Kernel], device: str) -> List[str]:
    """Returns the words of a run that name its kernel: none for a recording."""
    if kernel is None and not device.startswith("replay:"):
        raise InputError("no kernel is named; pass its name or a search space, or the device replay:FILE")
    return [] if kernel is None else [_operand(kernel)]


def _operand(kernel: Kernel) -> str:
    """Returns the word that names a kernel."""
    if not isinstance(kernel, (str, os.PathLike)):
        raise InputError(f"the kernel is of type {type(kernel).__name__}; give its name or the path of a search space")
    word = os.fspath(kernel)
    if word.startswith("-"):
        raise InputError(f"{visible(word)[:80]} is an option, not a kernel; a path may begin with ./")
    return word


def _csv(configs: Sequence[Config]) -> str:
    if not configs:
        raise InputError("configs is empty; leave it out for the default configuration and the seeds")
    if not configs[0]:
        raise InputError("a configuration in configs is empty; leave configs out for the default configuration and the seeds")
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(configs[0]))
    writer.writeheader()
    try:
        writer.writerows({name: _spelled(value) for name, value in config.items()} for config in configs)
    except ValueError as error:
        raise InputError(f"configs name different parameters: {error}") from error
    return text.getvalue()
