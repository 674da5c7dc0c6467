"""A search space in a folder of the user."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, List, Union

from .problem import Problem, looks_like_a_filename
from .space import FIRST_LINE, SPACE_FILE


def publish(written: Path, folder: Union[str, Path], problem: Problem) -> None:
    """Moves the files of a search space to a folder of the user; raises ValueError where a file of the user would be
    overwritten. Those of an earlier search space may be, if they are no source of this one."""
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise ValueError(f"export_space: {target} is a file; name a folder")
    files = sorted(file for file in written.iterdir() if file.is_file())
    sources = {os.path.realpath(file) for file in [*_source_files(problem.kernel_source), *problem.included]}
    ours = _is_ours(target / SPACE_FILE)
    for file in files:
        place = target / file.name
        if os.path.realpath(place) in sources:
            raise ValueError(f"export_space would overwrite {place}, a source of {problem.kernel_name}; name another folder")
        if os.path.lexists(place) and not ours:
            raise ValueError(f"export_space would overwrite {place}; name a folder without files")
    target.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.move(str(file), str(target / file.name))


def _source_files(kernel_source: Any) -> List[Path]:
    listed = kernel_source if isinstance(kernel_source, (list, tuple)) else [kernel_source]
    return [Path(each) for each in listed if isinstance(each, Path) or looks_like_a_filename(each)]


def _is_ours(space: Path) -> bool:
    """Reports whether a search space was written here."""
    try:
        with open(space, encoding="utf-8", errors="replace") as file:
            return file.readline().rstrip("\n") == FIRST_LINE
    except OSError:
        return False
