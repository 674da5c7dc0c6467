"""NVMLObserver: refused by name."""

from . import refuse

NVMLObserver = refuse("NVMLObserver", "power, clocks and temperature by NVML", "tune with `tuner run --objective time,energy`")
_INSTEAD = "lock clocks with nvidia-smi"
get_nvml_pwr_limits = refuse("get_nvml_pwr_limits", "power limits by NVML", _INSTEAD)
get_nvml_gr_clocks = refuse("get_nvml_gr_clocks", "clocks by NVML", _INSTEAD)
get_nvml_mem_clocks = refuse("get_nvml_mem_clocks", "clocks by NVML", _INSTEAD)
get_idle_power = refuse("get_idle_power", "power by NVML", "tune with `tuner run --objective time,energy`")
nvml = refuse("nvml", "power, clocks and temperature by NVML", _INSTEAD)
