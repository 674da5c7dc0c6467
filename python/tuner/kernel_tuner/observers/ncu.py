"""NCUObserver: refused by name."""

from . import refuse

NCUObserver = refuse("NCUObserver", "metrics of Nsight Compute", "use `tuner profile`")
