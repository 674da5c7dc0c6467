"""`kernel_tuner` in processes that a script starts: they have the script's `sys.path`, and not its finders."""

import importlib
import sys

from tuner.kernel_tuner import drop_in

drop_in.install()
sys.modules[__name__] = importlib.import_module("tuner.kernel_tuner")
