"""AMDSMIObserver: refused by name."""

from . import refuse

AMDSMIObserver = refuse("AMDSMIObserver", "power of AMD's GPUs", "kernels of CUDA only")
AMDSMIContinuousObserver = refuse("AMDSMIContinuousObserver", "power of AMD's GPUs", "kernels of CUDA only")
