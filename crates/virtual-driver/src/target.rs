//! Targets of compiled code, and the GPUs that run it.

use std::fmt;

/// Features that code may use (CUDA C++ Programming Guide, "Feature Set Compiler Targets").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Features {
    /// Those of all later GPUs.
    Base,
    /// Those of the family (`sm_100f`).
    Family,
    /// Those of one compute capability (`sm_90a`).
    Architecture,
}

/// Target of code, such as `sm_90a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    /// Compute capability, times ten.
    pub(crate) capability: u32,
    pub(crate) features: Features,
}

impl Target {
    /// Parses a target without its kind, such as `90a`. The capability is 0 if there is no number.
    pub(crate) fn read(text: &str) -> Target {
        Target {
            capability: text.trim_end_matches(['a', 'f']).parse().unwrap_or(0),
            features: match text.chars().last() {
                Some('a') => Features::Architecture,
                Some('f') => Features::Family,
                _ => Features::Base,
            },
        }
    }

    /// Reports whether PTX of the target can be translated for a GPU of a compute capability.
    pub(crate) fn translates_for(self, gpu: u32) -> bool {
        match self.features {
            Features::Architecture => self.capability == gpu,
            Features::Family => self.is_of_generation(gpu) && self.capability <= gpu,
            Features::Base => self.capability <= gpu,
        }
    }

    /// Reports whether a GPU of a compute capability runs machine code of the target. PTX runs on later
    /// GPUs, machine code only on those of its own generation (CUDA C++ Programming Guide, "Binary
    /// Compatibility").
    pub(crate) fn runs_on(self, gpu: u32) -> bool {
        self.translates_for(gpu) && self.is_of_generation(gpu)
    }

    fn is_of_generation(self, gpu: u32) -> bool {
        self.capability / 10 == gpu / 10
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.features {
            Features::Architecture => "a",
            Features::Family => "f",
            Features::Base => "",
        };
        write!(f, "{}{suffix}", self.capability)
    }
}
