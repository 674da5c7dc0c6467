//! What was found about one candidate: the verdict with its evidence.

use crate::timing::predict::Explanation;
use serde::{Deserialize, Serialize};
use tuner_core::record::{Hazard, Measurement, Verdict};
use tuner_core::units::Micros;

/// The result of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub detail: String,
    /// Everything the checks found.
    pub hazards: Vec<Hazard>,
    /// Largest error divided by its tolerance.
    pub max_error: Option<f64>,
    /// The time, where one was asked for and the verdict is `ok`.
    pub measurement: Option<Measurement>,
    /// What explains a predicted time.
    pub explanation: Option<Explanation>,
    /// The predicted time of a candidate that is `unchecked`: `tuner predict` shows it, and nothing
    /// ranks or stores it.
    #[serde(default)]
    pub unproven: Option<Micros>,
}
