"""Expected values of a search space: those of the script, or the outputs of a configuration."""

from __future__ import annotations

import itertools
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

import numpy as np

from .. import check
from .._errors import TunerError
from .arguments import from_bytes
from .cache import key
from .notices import warn
from .problem import Problem
from .restrictions import valid_configurations
from .space import Export, Reference
from .tables import Params

Row = Dict[str, Any]
#: Configurations that are tried as the reference.
FIRST_TRIED = 16
# Configurations among which those are chosen: an enumeration begins with ones that differ in a parameter.
_ENUMERATED_MAX = 20_000
_SPREAD_SEED = 1
_NOTHING = """version: 1
kernel: nothing
source: nothing.cu
problems: { none: { } }
arguments: []
launches:
  - { entry: nothing, grid: [1], block: [1] }
reference: none
"""


class RaceWarning(UserWarning):
    """A kernel whose threads write the same value to one place."""


def answered(export: Export, answer: List[Any], atol: float, device: str, scratch: bool) -> Reference:
    """Returns the expected values of an answer. Arguments that it leaves out are not compared.

    :param scratch: an argument that is left out may begin without contents; False after a kernel was seen to
        read them. Then its contents after a run of the first configuration are expected.
    """
    problem = export.problem
    given = {place: value for place, value in enumerate(answer) if value is not None}
    missing = [place for place in problem.outputs() if place not in given]
    unclear = [place for place in missing if not problem.parameters[place].overwritten]
    problem.scratch = {place for place in missing if place not in unclear}
    if unclear:
        found = _outputs_of_first(export, device)
        same = [place for place in unclear if found[place].tobytes() == problem.arguments[place].tobytes()]
        problem.unchanged.update(same)
        changed = [place for place in unclear if place not in same]
        if scratch:
            problem.scratch.update(changed)
        else:
            given.update({place: found[place] for place in changed})
    return Reference(values=given, atol=atol)


def _outputs_of_first(export: Export, device: str) -> Dict[int, Any]:
    """Returns the outputs of the first configuration without a hazard; raises TunerError if none is found."""
    last: Row = {}
    for params in candidates(export.problem):
        outputs, last = run_whole(export, params, device)
        if outputs is not None:
            return outputs
    raise TunerError(
        f"none of the configurations of {export.problem.kernel_name} that were tried runs without a hazard: "
        f"{last.get('verdict')}: {last.get('detail')}; correct the kernel"
    )


def find_first(export: Export, device: str, failed: Set[str]) -> Optional[Params]:
    """Returns a configuration that has no hazard and whose outputs are numbers, or None if none is found.

    :param failed: keys of configurations that are known to have one
    """
    for params in candidates(export.problem):
        if key(params) in failed:
            continue
        row, outputs = inspect_configuration(export, params, device)
        # Where no outputs come back, the problem is too large to be run whole.
        if row["verdict"] in ("ok", "unchecked") and (outputs is None or not undefined(outputs)):
            return params
        failed.add(key(params))
    return None


def undefined(outputs: Mapping[int, Any]) -> bool:
    """Reports whether no element of the outputs is a finite number."""
    numbers = [value for value in outputs.values() if value.dtype.kind != "V"]
    return bool(numbers) and not any(np.isfinite(value).any() for value in numbers)


def candidates(problem: Problem) -> Iterator[Params]:
    """Returns the first configuration and others from all over the space."""
    valid = valid_configurations(problem.tune_params, problem.rules, problem.block_size_names)
    listed = list(itertools.islice(valid, _ENUMERATED_MAX))
    yield problem.first
    others = [params for params in listed if params != problem.first]
    yield from random.Random(_SPREAD_SEED).sample(others, min(len(others), FIRST_TRIED - 1))


def allow_same_values(export: Export, params: Params, device: str, detail: str) -> bool:
    """Allows unordered writes of equal values, with a warning, if these are the only races of a configuration."""
    if export.same_value_writes:
        return False
    export.same_value_writes = True
    row, _ = inspect_configuration(export, params, device)
    if row["verdict"] not in ("ok", "unchecked"):
        export.same_value_writes = False
        return False
    warn(RaceWarning, f"{export.problem.kernel_name}: threads write the same value to one place without an order: {detail}")
    return True


def inspect_configuration(export: Export, params: Params, device: str) -> Tuple[Row, Optional[Dict[int, Any]]]:
    """Runs a configuration and returns its row of `tuner check`, and the contents of the arguments that it
    may change; None where it was not run whole."""
    problem = export.problem
    path = export.write(name="one.yaml", configuration=params)
    folder = export.folder / "outputs"
    shutil.rmtree(folder, ignore_errors=True)
    row = check(
        path, problem=export.problem_name, device=device, configs=[{}], options=["--outputs", str(folder)], cwd=str(export.folder)
    )[0]
    path.unlink()
    outputs = {}
    for place in problem.outputs():
        file = folder / f"{place}.bin"
        if not file.is_file():
            return row, None
        outputs[place] = from_bytes(file.read_bytes(), problem.arguments[place])
    return row, outputs


def run_whole(export: Export, params: Params, device: str) -> Tuple[Optional[Dict[int, Any]], Row]:
    """Runs a configuration whole and returns the contents of the arguments that it may change, or None
    if it has a hazard; and its row of `tuner check`."""
    row, outputs = inspect_configuration(export, params, device)
    if row["verdict"] == "race" and allow_same_values(export, params, device, row["detail"]):
        row, outputs = inspect_configuration(export, params, device)
    if row["verdict"] not in ("ok", "unchecked"):
        return None, row
    if outputs is None:
        raise TunerError(
            f"{export.problem.kernel_name} is too large to be run whole on {device}: {row['detail']}; use a GPU or a "
            "smaller problem"
        )
    return outputs, row


def find_device_name(device: str) -> str:
    """Returns the name of a device as results have it, by a kernel that does nothing."""
    with tempfile.TemporaryDirectory(prefix="tuner-") as folder:
        (Path(folder) / "nothing.cu").write_text("__global__ void nothing() {}\n", encoding="utf-8")
        path = Path(folder) / "nothing.yaml"
        path.write_text(_NOTHING, encoding="utf-8")
        return str(check(path, device=device, configs=[{}], cwd=folder)[0]["device"])
