//! Compile targets: `sm_90`, `sm_90a`, `sm_100f`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Feature set of a target beyond the portable one (CUDA C++ Programming Guide, "Feature
/// Availability").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArchFeatures {
    /// Architecture-specific: the code runs on exactly this compute capability.
    A,
    /// Family-specific: the code also runs on later minor revisions of the same major one.
    F,
}

impl ArchFeatures {
    /// Returns the first compute capability with targets of this suffix.
    #[must_use]
    pub const fn first_capability(self) -> u32 {
        match self {
            Self::A => 90,
            Self::F => 100,
        }
    }

    /// Returns the suffix.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::F => "f",
        }
    }
}

/// A real compile target: `sm_` and a compute capability, with an optional suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ComputeTarget {
    /// Compute capability times ten, such as 90.
    pub cc: u32,
    /// The suffix.
    pub features: Option<ArchFeatures>,
}

/// A text that is not a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a compile target; type --arch sm_90 (or sm_80, sm_90a, sm_100f, …)")]
pub struct InvalidTarget(String);

/// Reason why a requested target cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text is not a target.
    #[error(transparent)]
    Invalid(#[from] InvalidTarget),
    /// The GPU cannot run its code.
    #[error("--arch {0}: {1}; leave --arch out, or choose such a GPU with --device")]
    OtherGpu(ComputeTarget, String),
}

impl ComputeTarget {
    /// Chooses the target of code for a GPU: that of `--arch`, else its portable one. The search space adds
    /// its features.
    ///
    /// # Errors
    /// A text that is not a target, and one whose code the GPU cannot run.
    pub fn choose(cc: u32, requested: Option<&str>) -> Result<Self, TargetError> {
        let Some(text) = requested else {
            return Ok(Self::of_device(cc));
        };
        let target: Self = text.parse()?;
        match target.refusal(cc) {
            Some(why) => Err(TargetError::OtherGpu(target, why)),
            None => Ok(target),
        }
    }

    /// Returns the portable target of a device.
    #[must_use]
    pub const fn of_device(cc: u32) -> Self {
        Self { cc, features: None }
    }

    /// Returns the target of a template that requires these features, starting from the device's target or
    /// that of `--arch`. An existing suffix stays. A GPU without targets of the suffix gets the portable
    /// one, so that a template may be written for several generations.
    #[must_use]
    pub fn with_features(self, asked: Option<ArchFeatures>) -> Self {
        let known = asked.filter(|features| self.cc >= features.first_capability());
        Self {
            features: self.features.or(known),
            ..self
        }
    }

    /// Returns this target with all features of its architecture; `None` if it has a suffix, or
    /// such a target does not exist.
    #[must_use]
    pub fn architecture_specific(self) -> Option<Self> {
        let specific = self.with_features(Some(ArchFeatures::A));
        (specific != self && self.features.is_none()).then_some(specific)
    }

    /// Returns the GPUs that the code runs on, for messages.
    #[must_use]
    pub fn reach(self) -> String {
        let (major, minor) = (self.cc / 10, self.cc % 10);
        match self.features {
            None => format!("compute capability {major}.{minor} and later"),
            Some(ArchFeatures::A) => format!("compute capability {major}.{minor} only"),
            Some(ArchFeatures::F) => {
                format!("compute capability {major}.{minor} and later ones of {major}.x")
            }
        }
    }

    /// Reports whether a GPU of this compute capability can run PTX of the target.
    #[must_use]
    pub fn runs_on(self, cc: u32) -> bool {
        match self.features {
            None => self.cc <= cc,
            Some(ArchFeatures::A) => self.cc == cc,
            Some(ArchFeatures::F) => self.cc <= cc && self.cc / 10 == cc / 10,
        }
    }

    /// Returns the reason why a GPU of this compute capability cannot run code of the target.
    #[must_use]
    pub fn refusal(self, cc: u32) -> Option<String> {
        (!self.runs_on(cc)).then(|| {
            format!(
                "the code is for {self}, which runs on {}; the GPU is sm_{cc}",
                self.reach()
            )
        })
    }
}

impl fmt::Display for ComputeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = self.features.map_or("", ArchFeatures::suffix);
        write!(f, "sm_{}{suffix}", self.cc)
    }
}

impl FromStr for ComputeTarget {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let invalid = || InvalidTarget(text.to_owned());
        let rest = text.strip_prefix("sm_").ok_or_else(invalid)?;
        let suffixes = [('a', ArchFeatures::A), ('f', ArchFeatures::F)];
        let suffix = suffixes.into_iter().find(|(last, _)| rest.ends_with(*last));
        let digits = suffix.map_or(rest, |_| &rest[..rest.len() - 1]);
        // `parse` would accept a sign; longer texts do not name an architecture.
        let plain = (2..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        let cc = digits.parse().ok().filter(|_| plain).ok_or_else(invalid)?;
        Ok(Self {
            cc,
            features: suffix.map(|(_, features)| features),
        })
    }
}

#[cfg(test)]
mod tests;
