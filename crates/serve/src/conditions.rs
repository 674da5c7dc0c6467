//! Current conditions of the daemon.

use super::view::ConditionView;
use std::collections::BTreeMap;
use std::sync::Mutex;
use tuner_core::panics::lock;

/// Current conditions, and the devices whose last run failed.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    present: Mutex<BTreeMap<&'static str, ConditionView>>,
    pub(super) devices: Mutex<BTreeMap<String, String>>,
}

impl Conditions {
    /// Records that a real GPU or its driver ended a run.
    pub(super) fn device_fails(&self, device: &str, reason: String) {
        if device.starts_with("cuda") {
            lock(&self.devices).insert(device.to_owned(), reason);
        }
    }

    /// Records that a run on a device completed.
    pub(super) fn device_works(&self, device: &str) {
        lock(&self.devices).remove(device);
    }

    /// Returns the conditions of the last check.
    pub(super) fn present(&self) -> Vec<ConditionView> {
        lock(&self.present).values().cloned().collect()
    }

    pub(super) fn update(&self, found: &[(&'static str, String)]) -> Vec<ConditionView> {
        let mut present = lock(&self.present);
        present.retain(|name, _| found.iter().any(|(other, _)| other == name));
        for (name, detail) in found {
            let condition = present.entry(name).or_insert_with(|| {
                tracing::warn!(condition = name, detail, "degraded");
                ConditionView {
                    name: (*name).to_owned(),
                    since: now(),
                    detail: String::new(),
                }
            });
            condition.detail.clone_from(detail);
        }
        present.values().cloned().collect()
    }
}

fn now() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}
