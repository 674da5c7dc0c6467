//! Names of a fleet's streams, queues and buckets. Each contains the fleet's name, so that fleets
//! can share a server and permissions can be granted for a fleet.

use tuner_core::record::DeviceKind;
use tuner_core::units::ContentHash;
use tuner_engine::fleet::{Assignment, PROTOCOL};

/// Default fleet name.
pub const DEFAULT_NAME: &str = "tuner";

/// Maximum length of a fleet name.
const NAME_LENGTH_MAX: usize = 32;

/// An invalid fleet name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid fleet name; use 1 to {NAME_LENGTH_MAX} letters, digits, `_` and `-`")]
pub struct NameError(String);

/// The names of one fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    fleet: String,
}

impl Names {
    /// Creates the names of a fleet.
    ///
    /// # Errors
    /// A name with characters other than letters, digits, `_` and `-`, or too long.
    pub fn new(fleet: &str) -> Result<Self, NameError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if fleet.is_empty() || fleet.len() > NAME_LENGTH_MAX || !fleet.chars().all(plain) {
            return Err(NameError(fleet.to_owned()));
        }
        Ok(Self {
            fleet: fleet.to_owned(),
        })
    }

    /// Returns the fleet's name.
    #[must_use]
    pub fn fleet(&self) -> &str {
        &self.fleet
    }

    /// Returns the stream of orders.
    pub(crate) fn work(&self) -> String {
        format!("TUNER_{}_V{PROTOCOL}_WORK", self.fleet)
    }

    /// Returns the stream of answers.
    pub(crate) fn results(&self) -> String {
        format!("TUNER_{}_V{PROTOCOL}_RESULTS", self.fleet)
    }

    /// Returns the stream of events.
    pub(crate) fn events(&self) -> String {
        format!("TUNER_{}_EVENTS", self.fleet)
    }

    fn subject(&self, rest: &str) -> String {
        format!("tuner.{}.v{PROTOCOL}.{rest}", self.fleet)
    }

    /// Returns the subject of all orders.
    pub(crate) fn all_work(&self) -> String {
        self.subject("work.>")
    }

    /// Returns the subject of a queue's orders, `device` or `compile` with its target.
    pub(crate) fn queue(&self, queue: &Queue) -> String {
        self.subject(&format!("work.{}.{}.>", queue.kind, queue.target))
    }

    /// Returns the subject of an order.
    pub(crate) fn order(&self, queue: &Queue, run: &str, id: &ContentHash) -> String {
        let (kind, target, id) = (queue.kind, &queue.target, id_word(id));
        self.subject(&format!("work.{kind}.{target}.{run}.{id}"))
    }

    /// Returns the subject of a run's orders.
    pub(crate) fn orders_of(&self, run: &str) -> String {
        self.subject(&format!("work.*.*.{run}.>"))
    }

    /// Returns the subject of all answers.
    pub(crate) fn all_results(&self) -> String {
        self.subject("result.>")
    }

    /// Returns the subject of a run's answers.
    pub(crate) fn results_of(&self, run: &str) -> String {
        self.subject(&format!("result.{run}.>"))
    }

    /// Returns the subject of an answer.
    pub(crate) fn result(&self, run: &str, id: &ContentHash) -> String {
        let id = id_word(id);
        self.subject(&format!("result.{run}.{id}"))
    }

    /// Returns the subject of all events.
    pub(crate) fn all_events(&self) -> String {
        format!("tuner.{}.event.>", self.fleet)
    }

    /// Returns the subject of events of one kind.
    pub(crate) fn event(&self, kind: &str) -> String {
        format!("tuner.{}.event.{kind}", self.fleet)
    }

    /// Returns the bucket of workers.
    pub(crate) fn workers(&self) -> String {
        format!("tuner_{}_workers", self.fleet)
    }

    /// Returns the bucket of hubs.
    pub(crate) fn hubs(&self) -> String {
        format!("tuner_{}_hubs", self.fleet)
    }

    /// Returns the bucket of names of compiled objects.
    pub(crate) fn compiled(&self) -> String {
        format!("tuner_{}_compiled", self.fleet)
    }

    /// Returns the object store of files and long messages.
    pub(crate) fn files(&self) -> String {
        format!("tuner_{}_files", self.fleet)
    }

    /// Returns the object store of compiled code.
    pub(crate) fn cubins(&self) -> String {
        format!("tuner_{}_cubins", self.fleet)
    }
}

/// A work queue: kind of work and target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Queue {
    /// `device` or `compile`.
    pub(crate) kind: &'static str,
    /// Device class or compile target.
    pub(crate) target: String,
}

impl Queue {
    /// Creates the queue of candidates for a device class.
    pub(crate) fn device(class: &str) -> Self {
        Self {
            kind: "device",
            target: class.to_owned(),
        }
    }

    /// Creates the queue of candidates for an architecture and an NVRTC version.
    pub(crate) fn compile(arch: &str, nvrtc: &str) -> Self {
        Self {
            kind: "compile",
            target: format!("{}-{}", word(arch), nvrtc_word(nvrtc)),
        }
    }

    /// Returns the consumer shared by the workers.
    pub(crate) fn consumer(&self) -> String {
        format!("{}_{}", self.kind, self.target)
    }
}

/// Returns the device class of an assignment: machines of one class return equal answers. If kernels are
/// compiled it includes the compiler's version, which is part of every candidate's identity.
pub(crate) fn class_of(assignment: &Assignment) -> String {
    if let Some(recording) = &assignment.recording {
        return format!("replay-{}", recording.short());
    }
    let device = &assignment.device;
    let nvrtc = assignment.nvrtc.as_deref().unwrap_or_default();
    class(device.kind, &device.name, nvrtc)
}

/// Returns the class of a device that runs kernels.
pub(crate) fn class(kind: DeviceKind, name: &str, nvrtc: &str) -> String {
    let name = word(name.strip_prefix("vgpu:").unwrap_or(name));
    format!("{}-{name}-{}", kind.name(), nvrtc_word(nvrtc))
}

/// Returns the suffix of the targets of an NVRTC version.
pub(crate) fn nvrtc_word(version: &str) -> String {
    format!("nvrtc{}", word(version))
}

/// Digits of an order's name in its subject: unique within a run.
const ID_DIGITS: usize = 32;

/// Converts an order's name to a subject token, independent of the sender's text.
fn id_word(id: &ContentHash) -> String {
    word(id.as_str()).chars().take(ID_DIGITS).collect()
}

/// Reports whether a text is a run's name and contains no subject syntax.
pub(crate) fn is_run(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !text.is_empty() && text.len() <= 64 && text.chars().all(plain)
}

/// Converts a text to one subject token.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() => c.to_ascii_lowercase(),
        _ => '_',
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests;
