//! Owner process of a run: a `running` run whose process has ended was killed and may be resumed; one with
//! a live process must not be touched.

/// Returns this process, as host, id and start time: ids are reused, pairs of id and start time are not.
pub(super) fn current() -> String {
    let id = std::process::id();
    format!(
        "{}/{id}/{}",
        tuner_core::provenance::host(),
        started(id).unwrap_or_default()
    )
}

/// Reports whether that process is still running. A process of another host counts as alive: its state
/// cannot be checked, and two writers of one run would mix their orders.
pub(super) fn is_alive(owner: &str) -> bool {
    let mut parts = owner.rsplitn(3, '/');
    let (Some(start), Some(id), Some(host)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    if host != tuner_core::provenance::host() {
        return true;
    }
    id.parse::<u32>()
        .ok()
        .and_then(started)
        .is_some_and(|now| now == start)
}

/// Returns the start time of a process in clock ticks since boot (field 22 of `/proc/ID/stat`).
fn started(id: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field is the program's name in parentheses and may contain anything.
    let (_, after) = stat.rsplit_once(')')?;
    // A zombie no longer executes a run.
    let mut fields = after.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    // Field 3 has been read, and 18 fields are between it and field 22.
    fields.nth(18).map(str::to_owned)
}

#[cfg(test)]
mod tests;
