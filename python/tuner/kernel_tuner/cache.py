"""Cache files of Kernel Tuner: reading, continuing and closing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import expressions
from .restrictions import Restriction
from .util import ErrorConfig, NpEncoder, error_named

Row = Dict[str, Any]
_CLOSED = ("}\n}", "}}}")


def with_ending(path: Union[str, Path]) -> str:
    """Returns the name of a cache file: `.json` is added where it is missing."""
    text = os.fspath(path)
    return text if text.endswith(".json") else text + ".json"


def key(params: Mapping[str, Any]) -> str:
    """Returns the key of a configuration."""
    return ",".join(str(value) for value in params.values())


def read_cache(cachefile: Union[str, Path], open_cache: bool = True) -> Dict[str, Any]:
    """Reads a cache file, closed or not. With `open_cache` the file can be appended to afterwards."""
    path = with_ending(cachefile)
    with open(path, encoding="utf-8") as file:
        text = file.read().strip()
    if text and not text.endswith(_CLOSED):
        text = text.rstrip(",") + "}\n}"
    elif open_cache and text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text[:-3] + ",")
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is not a cache file of Kernel Tuner: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("cache"), dict):
        raise ValueError(f"{path} is not a cache file of Kernel Tuner: it has no `cache`")
    for row in data["cache"].values():
        for value in list(row.values()):
            error_config = error_named(value)
            if error_config is not None:
                row["__error__"] = error_config
    return data


def close_cache(cachefile: Union[str, Path]) -> None:
    """Makes a cache file that was appended to valid JSON."""
    path = with_ending(cachefile)
    if not os.path.isfile(path):
        raise ValueError(f"the cache file {path} does not exist")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.endswith(","):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text[:-1] + "}\n}")


def store_cache(
    entry: str, params: Mapping[str, Any], cachefile: Optional[Union[str, Path]], cache: Dict[str, Any]
) -> None:
    """Adds a configuration to a cache and to its open file, unless it is there."""
    if entry in cache:
        return
    cache[entry] = params
    if cachefile:
        row = {name: str(value) if isinstance(value, ErrorConfig) else value for name, value in params.items()}
        with open(with_ending(cachefile), "a", encoding="utf-8") as file:
            file.write("\n" + json.dumps({entry: row}, cls=NpEncoder)[1:-1] + ",")


def header(
    kernel_name: str, problem_size: Any, tune_params: Mapping[str, Sequence[Any]], aims: List[Tuple[str, bool]]
) -> Dict[str, Any]:
    """Returns what a cache file says about its kernel."""
    return {
        "kernel_name": kernel_name,
        "problem_size": "callable" if callable(problem_size) else problem_size,
        "tune_params_keys": list(tune_params),
        "tune_params": dict(tune_params),
        "objective": [name for name, _ in aims],
    }


def check_matching_problem_size(cached: Any, wanted: Any) -> None:
    """Raises ValueError if a cache is that of another problem size."""
    one, other = np.array(cached), np.array(wanted)
    if one.size != other.size or not (one == other).all():
        raise ValueError(
            f"Cannot load cache which contains results for different problem_size, cache: {cached}, requested: {wanted}"
        )


class CacheFile:
    """A cache file that a run continues."""

    def __init__(self, path: Union[str, Path], header: Mapping[str, Any]) -> None:
        self.path = with_ending(path)
        self._header = dict(header)
        self._cache: Dict[str, Any] = {}
        self._opened = False
        #: Device that the file names.
        self.device_name = ""
        if os.path.isfile(self.path):
            data = read_cache(self.path, open_cache=False)
            self._check(data)
            self._cache = data["cache"]
            self.device_name = data["device_name"]

    def known(
        self, tune_params: Optional[Mapping[str, Sequence[Any]]] = None, rules: Sequence[Restriction] = ()
    ) -> Dict[str, Row]:
        """Returns the results in the file by configuration, or those in a space."""
        if tune_params is None:
            return dict(self._cache)
        data = {"tune_params_keys": list(tune_params), "cache": self._cache}
        return dict(filtered(data, tune_params, rules)["cache"])

    def open(self, device_name: str) -> None:
        """Opens the file for a device, or makes it; raises ValueError if it is another device's."""
        if self._opened:
            return
        if self.device_name and self.device_name != device_name:
            raise ValueError(
                f"Cannot load cache which contains results for different device (cache: {self.device_name}, actual: "
                f"{device_name}); use another file"
            )
        if self.device_name:
            read_cache(self.path)
        else:
            text = json.dumps({"device_name": device_name, **self._header, "cache": {}}, cls=NpEncoder, indent="")
            Path(self.path).write_text(text[:-3], encoding="utf-8")
        self.device_name, self._opened = device_name, True

    def store(self, row: Row, tune_params: Mapping[str, Any]) -> None:
        """Appends a result."""
        store_cache(key({name: row[name] for name in tune_params}), row, self.path, self._cache)

    def close(self) -> None:
        """Makes the file valid JSON."""
        if self._opened:
            close_cache(self.path)

    def _check(self, data: Mapping[str, Any]) -> None:
        wanted = self._header
        if data["kernel_name"] != wanted["kernel_name"]:
            raise ValueError(
                f"Cannot load cache which contains results for different kernel (cache: {data['kernel_name']}, actual: "
                f"{wanted['kernel_name']}); use another file"
            )
        if "problem_size" in data and wanted["problem_size"] != "callable":
            check_matching_problem_size(data["problem_size"], wanted["problem_size"])
        if data["tune_params_keys"] != wanted["tune_params_keys"]:
            raise ValueError(
                f"Cannot load cache which contains results obtained with different tunable parameters or another order "
                f"of them. Cache at '{self.path}' has: {data['tune_params_keys']}, tune_params has: "
                f"{wanted['tune_params_keys']}"
            )


def exclusion(
    rows: Iterable[Mapping[str, Any]], tune_params: Mapping[str, Sequence[Any]], names: Mapping[str, str]
) -> Optional[str]:
    """Returns a constraint that leaves out configurations: their numbers in the complete enumeration."""
    number = "0"
    for name, values in tune_params.items():
        number = f"({number} * {len(values)} + {expressions.position(names[name], values)})"
    left_out = []
    for row in rows:
        at = 0
        for name, values in tune_params.items():
            if row[name] not in values:
                break
            at = at * len(values) + list(values).index(row[name])
        else:
            left_out.append(at)
    return f"{number} not in [{', '.join(map(str, sorted(left_out)))}]" if left_out else None


def filtered(
    data: Mapping[str, Any], tune_params: Mapping[str, Sequence[Any]], rules: Sequence[Restriction]
) -> Dict[str, Any]:
    """Returns the part of a cache that is in a space."""
    names = list(data["tune_params_keys"])
    kept = {}
    for entry, row in data["cache"].items():
        params = {name: row[name] for name in names}
        inside = all(params[name] in tune_params.get(name, [params[name]]) for name in names)
        if inside and all(rule.holds(params) for rule in rules):
            kept[entry] = row
    # A file that was continued with other values does not list them.
    values = {name: tune_params.get(name, data.get("tune_params", {}).get(name)) for name in names}
    return {**data, "tune_params": values, "cache": kept}


def write_closed(path: Path, data: Mapping[str, Any]) -> Path:
    """Writes a cache as a closed file and returns its path."""
    path.write_text(json.dumps(data, cls=NpEncoder), encoding="utf-8")
    return path
