"""Build backend: maturin, with the shipped search spaces and templates as data of the wheel.

maturin takes data from a folder beside ``pyproject.toml``, and the files lie outside it.
"""

import shutil
from pathlib import Path
from typing import Any, Dict, List, Optional

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
    import maturin

    stage()
    try:
        return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    finally:
        shutil.rmtree(DATA, ignore_errors=True)


def build_editable(wheel_directory: str, config_settings: Config = None, metadata_directory: Optional[str] = None) -> str:
    """Builds an editable installation, which finds the folders of the checkout."""
    import maturin

    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: Config = None) -> str:
    """Refuses: an archive of this folder would lack the search spaces, templates and crates beside it."""
    raise RuntimeError("tuner has no source distribution of python/ alone: type `pip install ./python` in a checkout")


def get_requires_for_build_wheel(config_settings: Config = None) -> List[str]:
    """Names what a wheel needs besides maturin."""
    return []


get_requires_for_build_editable = get_requires_for_build_wheel
