"""Build backend: maturin, with the shipped search spaces and templates as data of the wheel.

maturin takes data from a folder beside ``pyproject.toml``, and the files lie outside it.
"""

import shutil
from pathlib import Path
from typing import Any, Dict, Optional

import maturin

HERE = Path(__file__).resolve().parent
DATA = HERE / "tuner.data"
# Installed beside the program's `bin`, where it looks for them.
SHARE = DATA / "data" / "share" / "tuner"

Config = Optional[Dict[str, Any]]


def stage() -> None:
    """Copies the folders to where maturin finds them."""
    shutil.rmtree(DATA, ignore_errors=True)
    for name in ("search_spaces", "templates"):
        shutil.copytree(HERE.parent / name, SHARE / name)


def build_wheel(wheel_directory: str, config_settings: Config = None, metadata_directory: Optional[str] = None) -> str:
    """Builds the wheel (PEP 517)."""
    stage()
    try:
        return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    finally:
        shutil.rmtree(DATA, ignore_errors=True)


# An editable installation finds the folders of the checkout.
build_editable = maturin.build_editable
build_sdist = maturin.build_sdist
get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
