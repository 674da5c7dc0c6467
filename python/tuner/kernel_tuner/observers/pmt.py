"""PMTObserver: refused by name."""

from . import refuse

PMTObserver = refuse("PMTObserver", "power by PMT", "tune with `tuner run --objective time,energy`")
PMTContinuousObserver = refuse("PMTContinuousObserver", "power by PMT", "tune with `tuner run --objective time,energy`")
