//! Work budget of proofs.

use serde::{Deserialize, Serialize};

/// Default lane instructions of a proof: half a minute of one core of the virtual GPU.
const DEFAULT: u64 = 30_000_000_000;

/// Maximum budget, lane instructions: all smaller numbers are exact as floats.
const MAX: u64 = 1 << 53;

/// Maximum lane instructions for running a timed problem whole, for a candidate and for its
/// reference each; 0: no proofs. Work instead of time, so that results do not depend on the
/// machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "u64")]
pub struct ProveBudget(u64);

/// An invalid budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a number of lane instructions: type a whole number from 0 (no proofs) to 2^53, such \
     as 3e10"
)]
pub struct ProveBudgetError(String);

impl ProveBudget {
    /// Returns the lane instructions.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

impl Default for ProveBudget {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl std::str::FromStr for ProveBudget {
    type Err = ProveBudgetError;

    fn from_str(text: &str) -> Result<Self, ProveBudgetError> {
        let wrong = || ProveBudgetError(text.to_owned());
        // Other float syntax (`inf`, `nan`, `-1`, `+1`, ` 1`) is refused.
        let plain = |c: char| c.is_ascii_digit() || matches!(c, 'e' | 'E' | '.' | '+');
        if !text.starts_with(|c: char| c.is_ascii_digit()) || !text.chars().all(plain) {
            return Err(wrong());
        }
        let number: f64 = text.parse().map_err(|_| wrong())?;
        if number.fract() != 0.0 || number > MAX as f64 {
            return Err(wrong());
        }
        Ok(Self(number as u64))
    }
}

impl From<ProveBudget> for u64 {
    fn from(budget: ProveBudget) -> Self {
        budget.0
    }
}

/// A budget in JSON: a number, or a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Number(serde_json::Number),
    Text(String),
}

impl TryFrom<Text> for ProveBudget {
    type Error = ProveBudgetError;

    fn try_from(text: Text) -> Result<Self, ProveBudgetError> {
        match text {
            Text::Number(number) => number.to_string().parse(),
            Text::Text(text) => text.parse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_in_any_notation_are_read() {
        for (text, expected) in [
            ("3e10", Some(30_000_000_000)),
            ("3E+10", Some(30_000_000_000)),
            ("1.5e3", Some(1500)),
            ("0", Some(0)),
            ("200000000", Some(200_000_000)),
            ("9007199254740992", Some(1 << 53)),
            ("9007199254740994", None),
            ("1e300", None),
            ("1.5", None),
            ("-1", None),
            ("+1", None),
            ("", None),
            ("e10", None),
            ("3e", None),
            ("nan", None),
            ("inf", None),
            ("3 e10", None),
            ("0x10", None),
            ("10G", None),
        ] {
            let read = text.parse::<ProveBudget>().ok().map(ProveBudget::get);
            assert_eq!(read, expected, "{text}");
            let json = serde_json::json!(text);
            let read = serde_json::from_value::<ProveBudget>(json).ok();
            assert_eq!(read.map(ProveBudget::get), expected, "{text}");
        }
        for (json, expected) in [("3e10", Some(30_000_000_000)), ("7", Some(7)), ("-1", None)] {
            let read = serde_json::from_str::<ProveBudget>(json).ok();
            assert_eq!(read.map(ProveBudget::get), expected, "{json}");
        }
    }

    #[test]
    fn it_is_written_as_a_number() {
        let text = serde_json::to_string(&ProveBudget::default()).unwrap();
        assert_eq!(text, "30000000000");
    }
}
