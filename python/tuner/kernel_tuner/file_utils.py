"""Output files of Kernel Tuner: T4 results and metadata."""

from __future__ import annotations

import json
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Union

from .. import TunerError, __version__
from .._program import run_json
from .util import CompilationFailedConfig, InvalidConfig, NpEncoder

_VERSION = "1.0.0"
_TIMINGS = {
    "compilation": "compile_time",
    "benchmark": "benchmark_time",
    "framework": "framework_time",
    "search_algorithm": "strategy_time",
    "validation": "verification_time",
}
_SYSTEMS = {"linux": "Linux", "darwin": "Mac", "win32": "Windows"}


def get_input_file(filepath: Union[str, Path], validate: bool = True) -> Dict[str, Any]:
    """Reads a file of the format T1; raises ValueError if it has not its parts."""
    document = json.loads(Path(filepath).read_text(encoding="utf-8"))
    missing = [name for name in ("ConfigurationSpace", "KernelSpecification") if name not in document]
    if validate and missing:
        raise ValueError(f"{filepath} is not a file of the format T1: it has no {', '.join(missing)}")
    return dict(document)


def _no_schema(*_: Any) -> Any:
    """Raises NotImplementedError: the schemas are part of Kernel Tuner."""
    raise NotImplementedError("schemas of T1 and T4 are not offered; those of Kernel Tuner describe the files that are written here")


input_file_schema = output_file_schema = _no_schema


def get_configuration_validity(error: Any) -> str:
    """Returns T4's word for the outcome of a configuration."""
    if not hasattr(error, "upper") or error not in ("ErrorConfig", "InvalidConfig", "CompilationFailedConfig", "RuntimeFailedConfig"):
        return "correct"
    if isinstance(error, CompilationFailedConfig):
        return "compile"
    return "constraints" if isinstance(error, InvalidConfig) else "runtime"


def get_t4_results(
    results: Sequence[Mapping[str, Any]], tune_params: Mapping[str, Any], objective: str = "time"
) -> Dict[str, Any]:
    """Returns results in the format T4. Each says by `timing` whether its time was measured or predicted."""
    if isinstance(objective, (list, tuple)):
        raise ValueError("The T4 format does not support multiple objectives; give one")
    left_out = {*tune_params, *_TIMINGS.values(), "timestamp", "times", "__error__", "timing", "verdict", "reference", "compared", "detail"}
    rows = []
    for result in results:
        row: Dict[str, Any] = {"timestamp": result["timestamp"]} if "timestamp" in result else {}
        row["configuration"] = {name: result[name] for name in tune_params if name in result}
        row["times"] = {ours: result.get(theirs, 0.0) for ours, theirs in _TIMINGS.items()}
        row["times"]["runtimes"] = list(result.get("times", []))
        row["invalidity"] = get_configuration_validity(result.get("__error__"))
        if row["invalidity"] == "runtime" and result.get("verdict") == "incorrect":
            row["invalidity"] = "correctness"
        row["correctness"] = 1 if row["invalidity"] == "correct" else 0
        row["measurements"] = [
            {"name": name, "value": value, "unit": "ms" if name.startswith("time") else ""}
            for name, value in result.items()
            if name not in left_out
        ]
        row["objectives"] = [objective]
        if "timing" in result:
            row["timing"] = result["timing"]
        rows.append(row)
    return {"results": rows, "schema_version": _VERSION, "metadata": {"timeunit": "milliseconds"}}


def store_output_file(
    output_filename: Union[str, Path],
    results: Sequence[Mapping[str, Any]],
    tune_params: Mapping[str, Any],
    objective: str = "time",
) -> None:
    """Writes results in the format T4."""
    _write(output_filename, get_t4_results(results, tune_params, objective))


def get_t4_metadata() -> Dict[str, Any]:
    """Returns the machine and its software in the format of T4's metadata."""
    try:
        devices: List[Dict[str, Any]] = run_json(["doctor"], accepted=(0, 4))
    except TunerError:
        devices = []
    described = {
        "operating_system": _SYSTEMS.get(sys.platform, "unidentified OS"),
        "hardware": {"hardware_description": [{"machine": platform.machine(), "doctor": devices}]},
        "environment": {"device_query": {}, "requirements": _requirements()},
    }
    return {"metadata": described, "schema_version": _VERSION}


def store_metadata_file(metadata_filename: Union[str, Path]) -> None:
    """Writes the machine and its software in the format of T4's metadata."""
    _write(metadata_filename, get_t4_metadata())


def _requirements() -> List[str]:
    found = [f"tuner=={__version__}"]
    for package in ("numpy", "nvidia-cuda-nvrtc"):
        try:
            found.append(f"{package}=={metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return found


def _write(filename: Union[str, Path], document: Mapping[str, Any]) -> None:
    path = Path(filename)
    path = path if path.suffix == ".json" else path.with_name(path.name + ".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, cls=NpEncoder, indent=2), encoding="utf-8")
