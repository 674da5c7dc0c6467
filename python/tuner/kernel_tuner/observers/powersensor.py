"""PowerSensorObserver: refused by name."""

from . import refuse

PowerSensorObserver = refuse("PowerSensorObserver", "power by PowerSensor", "tune with `tuner run --objective time,energy`")
