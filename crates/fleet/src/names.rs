//! What a fleet's streams, queues and buckets are called. Everything has the fleet's name in it, so
//! that fleets share a server without meeting, and rights can be given a fleet.

use tuner_core::record::DeviceKind;
use tuner_core::units::ContentHash;
use tuner_engine::fleet::{Assignment, PROTOCOL};

/// The fleet's name where none is given.
pub const DEFAULT_NAME: &str = "tuner";

/// Longest name of a fleet.
const NAME_LENGTH_MAX: usize = 32;

/// A name that no fleet can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name of a fleet; take 1 to {NAME_LENGTH_MAX} letters, digits, `_` and `-`")]
pub struct NameError(String);

/// The names of one fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    fleet: String,
}

impl Names {
    /// The names of the fleet of that name.
    ///
    /// # Errors
    /// A name with other characters than letters, digits, `_` and `-`, or too long.
    pub fn new(fleet: &str) -> Result<Self, NameError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if fleet.is_empty() || fleet.len() > NAME_LENGTH_MAX || !fleet.chars().all(plain) {
            return Err(NameError(fleet.to_owned()));
        }
        Ok(Self {
            fleet: fleet.to_owned(),
        })
    }

    /// The fleet's name.
    #[must_use]
    pub fn fleet(&self) -> &str {
        &self.fleet
    }

    /// Stream of orders.
    pub(crate) fn work(&self) -> String {
        format!("TUNER_{}_V{PROTOCOL}_WORK", self.fleet)
    }

    /// Stream of answers.
    pub(crate) fn results(&self) -> String {
        format!("TUNER_{}_V{PROTOCOL}_RESULTS", self.fleet)
    }

    /// Stream of what happened.
    pub(crate) fn events(&self) -> String {
        format!("TUNER_{}_EVENTS", self.fleet)
    }

    fn subject(&self, rest: &str) -> String {
        format!("tuner.{}.v{PROTOCOL}.{rest}", self.fleet)
    }

    /// All orders.
    pub(crate) fn all_work(&self) -> String {
        self.subject("work.>")
    }

    /// The orders of a queue, `device` or `compile` with its target.
    pub(crate) fn queue(&self, queue: &Queue) -> String {
        self.subject(&format!("work.{}.{}.>", queue.kind, queue.target))
    }

    /// One order.
    pub(crate) fn order(&self, queue: &Queue, run: &str, id: &ContentHash) -> String {
        let (kind, target, id) = (queue.kind, &queue.target, id_word(id));
        self.subject(&format!("work.{kind}.{target}.{run}.{id}"))
    }

    /// All orders of a run.
    pub(crate) fn orders_of(&self, run: &str) -> String {
        self.subject(&format!("work.*.*.{run}.>"))
    }

    /// All answers.
    pub(crate) fn all_results(&self) -> String {
        self.subject("result.>")
    }

    /// All answers to a run.
    pub(crate) fn results_of(&self, run: &str) -> String {
        self.subject(&format!("result.{run}.>"))
    }

    /// One answer.
    pub(crate) fn result(&self, run: &str, id: &ContentHash) -> String {
        let id = id_word(id);
        self.subject(&format!("result.{run}.{id}"))
    }

    /// All events.
    pub(crate) fn all_events(&self) -> String {
        format!("tuner.{}.event.>", self.fleet)
    }

    /// Events of one kind.
    pub(crate) fn event(&self, kind: &str) -> String {
        format!("tuner.{}.event.{kind}", self.fleet)
    }

    /// Bucket of workers.
    pub(crate) fn workers(&self) -> String {
        format!("tuner_{}_workers", self.fleet)
    }

    /// Bucket of hubs.
    pub(crate) fn hubs(&self) -> String {
        format!("tuner_{}_hubs", self.fleet)
    }

    /// Bucket that says which object holds what was compiled.
    pub(crate) fn compiled(&self) -> String {
        format!("tuner_{}_compiled", self.fleet)
    }

    /// Object store of files and long messages.
    pub(crate) fn files(&self) -> String {
        format!("tuner_{}_files", self.fleet)
    }

    /// Object store of compiled code.
    pub(crate) fn cubins(&self) -> String {
        format!("tuner_{}_cubins", self.fleet)
    }
}

/// A work queue: what is done, and for which target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Queue {
    /// `device` or `compile`.
    pub(crate) kind: &'static str,
    /// What takes from it.
    pub(crate) target: String,
}

impl Queue {
    /// Candidates for a kind of device.
    pub(crate) fn device(class: &str) -> Self {
        Self {
            kind: "device",
            target: class.to_owned(),
        }
    }

    /// Candidates to be compiled for an architecture by a version of NVRTC.
    pub(crate) fn compile(arch: &str, nvrtc: &str) -> Self {
        Self {
            kind: "compile",
            target: format!("{}-{}", word(arch), nvrtc_word(nvrtc)),
        }
    }

    /// The consumer that workers share.
    pub(crate) fn consumer(&self) -> String {
        format!("{}_{}", self.kind, self.target)
    }
}

/// The kind of device that an assignment is for: machines of one class give one answer. Where kernels
/// are compiled it has the compiler's version in it, which is part of every candidate's identity.
pub(crate) fn class_of(assignment: &Assignment) -> String {
    if let Some(recording) = &assignment.recording {
        return format!("replay-{}", recording.short());
    }
    let device = &assignment.device;
    let nvrtc = assignment.nvrtc.as_deref().unwrap_or_default();
    class(device.kind, &device.name, nvrtc)
}

/// The class of a device that runs kernels.
pub(crate) fn class(kind: DeviceKind, name: &str, nvrtc: &str) -> String {
    let name = word(name.strip_prefix("vgpu:").unwrap_or(name));
    format!("{}-{name}-{}", kind.name(), nvrtc_word(nvrtc))
}

/// The end of the targets that a version of NVRTC compiles for.
pub(crate) fn nvrtc_word(version: &str) -> String {
    format!("nvrtc{}", word(version))
}

/// Digits of an order's name in its subject: enough that no two of a run share them.
const ID_DIGITS: usize = 32;

/// The name of an order as a word of a subject, whatever a message says it is.
fn id_word(id: &ContentHash) -> String {
    word(id.as_str()).chars().take(ID_DIGITS).collect()
}

/// Whether a text is a run's name, and no part of a subject that means something else.
pub(crate) fn is_run(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !text.is_empty() && text.len() <= 64 && text.chars().all(plain)
}

/// A text as one word of a subject.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() => c.to_ascii_lowercase(),
        _ => '_',
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests;
