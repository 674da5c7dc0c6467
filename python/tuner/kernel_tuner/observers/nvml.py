"""NVMLObserver: refused by name."""

from . import refuse

NVMLObserver = refuse("NVMLObserver", "power, clocks and temperature by NVML", "tune with `tuner run --objective time,energy`")
