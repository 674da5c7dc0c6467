"""TegraObserver: refused by name."""

from . import refuse

TegraObserver = refuse("TegraObserver", "clocks and power of Tegra", "there is no counterpart")
