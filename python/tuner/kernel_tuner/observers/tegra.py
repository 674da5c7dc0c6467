"""TegraObserver: refused by name."""

from . import refuse

TegraObserver = refuse("TegraObserver", "clocks and power of Tegra", "there is no counterpart")
get_tegra_gr_clocks = refuse("get_tegra_gr_clocks", "clocks of Tegra", "there is no counterpart")
