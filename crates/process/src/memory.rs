//! Memory that a process may still allocate.

use std::path::Path;

/// Returns the bytes that this machine and this process's control group have available; `None` if neither
/// can be read.
#[must_use]
pub fn free_memory() -> Option<u64> {
    free_in(Path::new("/"))
}

fn free_in(root: &Path) -> Option<u64> {
    let read = |file: &str| std::fs::read_to_string(root.join(file)).ok();
    let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
    let machine = read("proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
        kib.checked_mul(1024)
    });
    // In a container the mount is the group's own; without a limit the file contains `max`.
    let group = ["sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"].map(number);
    let group = match group {
        [Some(most), Some(used)] => Some(most.saturating_sub(used)),
        _ => None,
    };
    match (machine, group) {
        (Some(machine), Some(group)) => Some(machine.min(group)),
        (machine, group) => machine.or(group),
    }
}

#[cfg(test)]
mod tests;
