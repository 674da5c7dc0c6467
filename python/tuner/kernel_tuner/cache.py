"""Cache files of Kernel Tuner: reading, continuing and closing."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import expressions
from .restrictions import Restriction
from .util import ErrorConfig, NpEncoder, error_named

Row = Dict[str, Any]


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
    text = _text_of(path)
    data = _parsed(path, text)
    if open_cache and not _can_be_appended(text, data):
        _replace(path, _open_text(data))
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
    text = _text_of(path)
    try:
        json.loads(text)
    except ValueError:
        _parsed(path, text)
        _replace(path, _closed_text(text))


def _text_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def _closed_text(text: str) -> str:
    """Returns the text of a file that was appended to as valid JSON."""
    return text.rstrip(",") + "}\n}"


def _parsed(path: str, text: str) -> Dict[str, Any]:
    """Returns the contents of a cache file, closed or not; raises ValueError if it is none."""
    try:
        try:
            data = json.loads(text)
        except ValueError:
            data = json.loads(_closed_text(text))
    except ValueError as error:
        raise ValueError(f"{path} is not a cache file of Kernel Tuner: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("cache"), dict):
        raise ValueError(f"{path} is not a cache file of Kernel Tuner: it has no `cache`")
    if not all(isinstance(row, dict) for row in data["cache"].values()):
        raise ValueError(f"{path} is not a cache file of Kernel Tuner: a result is no dict")
    return dict(data)


def _can_be_appended(text: str, data: Mapping[str, Any]) -> bool:
    """Reports whether a row may follow the text of a cache file."""
    return text.endswith("," if data["cache"] else "{")


def _open_text(data: Mapping[str, Any]) -> str:
    """Returns the text of a cache file to which rows are appended."""
    head = {name: value for name, value in data.items() if name != "cache"}
    text = json.dumps({**head, "cache": {}}, cls=NpEncoder, indent="")
    return text[: -len("}\n}")] + "".join(_row_text(entry, row) for entry, row in data["cache"].items())


def _row_text(entry: str, row: Mapping[str, Any]) -> str:
    return "\n" + json.dumps({entry: row}, cls=NpEncoder)[1:-1] + ","


def _replace(path: str, text: str) -> None:
    """Writes a file at once: an interruption leaves the old one."""
    target = os.path.realpath(path)
    handle, name = tempfile.mkstemp(prefix=".cache-", dir=os.path.dirname(target))
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(target, name)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


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
            file.write(_row_text(entry, row))


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


def check_header(path: str, data: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raises ValueError if a cache file is that of another kernel, problem size or space.

    :param wanted: header of the file that is wanted
    """
    missing = [name for name in ("device_name", "kernel_name", "tune_params_keys") if name not in data]
    if missing:
        raise ValueError(f"{path} is not a cache file of Kernel Tuner: it has no `{missing[0]}`")
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
            f"of them. Cache at '{path}' has: {data['tune_params_keys']}, tune_params has: "
            f"{wanted['tune_params_keys']}"
        )


class CacheFile:
    """A cache file that a run continues."""

    def __init__(self, path: Union[str, Path], header: Mapping[str, Any]) -> None:
        self.path = with_ending(path)
        self._header = dict(header)
        self._cache: Dict[str, Any] = {}
        self._opened = self._accepted = False
        #: Device that the file names: none (`""`) in one of a host kernel, None where there is no file.
        self.device_name: Optional[str] = None
        if os.path.exists(self.path):
            data = read_cache(self.path, open_cache=False)
            check_header(self.path, data, self._header)
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
        self.check_device(device_name)
        if self.device_name is not None:
            read_cache(self.path)
        else:
            # Not over a file that another process has made meanwhile.
            with open(self.path, "x", encoding="utf-8") as file:
                file.write(_open_text({"device_name": device_name, **self._header, "cache": {}}))
        self.device_name, self._opened = device_name, True

    def check_device(self, device_name: str) -> None:
        """Raises ValueError if the file is another device's."""
        if self.device_name is not None and self.device_name != device_name:
            raise ValueError(
                f"Cannot load cache which contains results for different device (cache: {self.device_name or 'none'}, "
                f"actual: {device_name}); use another file"
            )
        self._accepted = True

    def store(self, row: Row, tune_params: Mapping[str, Any]) -> None:
        """Appends a result."""
        store_cache(key({name: row[name] for name in tune_params}), row, self.path, self._cache)

    def close(self) -> None:
        """Makes the file valid JSON, unless it was refused: another process may write to it."""
        if self._accepted and os.path.isfile(self.path):
            close_cache(self.path)


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


def restrictions_of(data: Mapping[str, Any], names: Sequence[str]) -> List[Restriction]:
    """Returns rules that the configurations of a cache alone satisfy that have no error: one for the first values, one
    for the first two, and so on, so that an enumeration leaves out what no configuration begins with."""
    rows = [row for row in data["cache"].values() if "__error__" not in row]

    def rule(first: Sequence[str]) -> Restriction:
        known = {key({name: row.get(name) for name in first}) for row in rows}
        return Restriction(lambda params: key({name: params[name] for name in first}) in known, "of the cache file", reads=set(first))

    return [rule(names[: at + 1]) for at in range(len(names))]


def filtered(
    data: Mapping[str, Any], tune_params: Mapping[str, Sequence[Any]], rules: Sequence[Restriction]
) -> Dict[str, Any]:
    """Returns the part of a cache that is in a space."""
    names = list(data["tune_params_keys"])
    kept = {}
    for entry, row in data["cache"].items():
        missing = [name for name in names if name not in row]
        if missing:
            raise ValueError(f"the result {entry} of the cache file lacks the parameter {missing[0]}; remove it")
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
