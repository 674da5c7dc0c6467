"""`python -m tuner.kernel_tuner script.py`: runs a script of Kernel Tuner as it is."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from typing import List, Optional

from . import limits
from .drop_in import STAND_IN, install


def main(arguments: Optional[List[str]] = None) -> None:
    """Puts this package in the place of `kernel_tuner` and runs a script or module."""
    parser = argparse.ArgumentParser(
        prog="python -m tuner.kernel_tuner",
        description="Runs a script that imports kernel_tuner with tuner in its place.",
        epilog="example: python -m tuner.kernel_tuner --evals 20 --device vgpu:a100 vector_add.py",
    )
    parser.add_argument("--evals", type=int, metavar="N", help="largest number of configurations of each tune_kernel")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="largest time of each tune_kernel")
    parser.add_argument("--device", metavar="D", help="device of each tune_kernel, such as vgpu:a100 or cuda:1")
    parser.add_argument("--summary", metavar="FILE", help="append a JSON line about each tune_kernel to this file")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, such as pytest")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="arguments of the script")
    given = parser.parse_args(arguments)
    settings = {
        limits.EVALS: given.evals,
        limits.BUDGET: given.budget,
        limits.DEVICE: given.device,
        limits.SUMMARY: given.summary and os.path.abspath(given.summary),
    }
    os.environ.update({name: str(value) for name, value in settings.items() if value is not None})
    install()
    sys.argv = [given.script, *given.rest]
    if given.module:
        sys.path[:0] = [os.getcwd(), str(STAND_IN)]
        runpy.run_module(given.script, run_name="__main__", alter_sys=True)
        return
    if not os.path.isfile(given.script):
        parser.error(f"{given.script}: no such file; give the path of a script")
    sys.path[:0] = [os.path.dirname(os.path.abspath(given.script)), str(STAND_IN)]
    runpy.run_path(given.script, run_name="__main__")


if __name__ == "__main__":
    main()
