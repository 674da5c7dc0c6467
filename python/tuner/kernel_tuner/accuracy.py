"""Mixed precision by `TunablePrecision`: arguments whose type depends on a parameter are refused by name."""

from .observers import refuse

TunablePrecision = refuse(
    "TunablePrecision", "arguments whose type depends on a parameter", "tune each precision on its own"
)
Tunable = refuse("Tunable", "arguments that depend on a parameter", "tune each of them on its own")
AccuracyObserver = refuse("AccuracyObserver", "the error of each configuration", "`max_error` of `tuner leaderboard` has it")
