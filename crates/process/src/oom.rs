//! Counters of the kernel's out-of-memory killer.

use std::path::Path;

/// Number of processes that the out-of-memory killer has ended, by each readable counter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OomKills {
    /// Count for this process's control group.
    cgroup: Option<u64>,
    /// Count for the whole machine.
    machine: Option<u64>,
}

impl OomKills {
    /// Reads the counters.
    pub(crate) fn read() -> Self {
        Self::read_in(Path::new("/"))
    }

    fn read_in(root: &Path) -> Self {
        let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        Self {
            cgroup: groups.lines().find_map(|line| read_group(root, line)),
            machine: read_counter(&root.join("proc/vmstat")),
        }
    }

    /// Returns the likely cause of a SIGKILL since `before`; `None` if no counter grew.
    pub(crate) fn cause_since(&self, before: &Self) -> Option<&'static str> {
        let grew = |now: Option<u64>, then: Option<u64>| now > then && then.is_some();
        if grew(self.cgroup, before.cgroup) {
            Some(
                "out of memory: the kernel ended it at the memory limit of this control group; \
                 raise that limit or lower --jobs",
            )
        } else if grew(self.machine, before.machine) {
            Some(
                "out of memory: the kernel ended it because the machine's memory was full; free memory or lower --jobs",
            )
        } else {
            None
        }
    }
}

/// Reads the counter for a line of `/proc/self/cgroup`: `0::/path` (version 2) or `N:memory:/path`
/// (version 1).
fn read_group(root: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
    let (mount, file) = if controllers.is_empty() {
        ("sys/fs/cgroup", "memory.events")
    } else if controllers.split(',').any(|name| name == "memory") {
        ("sys/fs/cgroup/memory", "memory.oom_control")
    } else {
        return None;
    };
    // In a container the path may be the host's; the group is then the root of the mount.
    let mount = root.join(mount);
    read_counter(&mount.join(path).join(file)).or_else(|| read_counter(&mount.join(file)))
}

/// Reads the value of the line `oom_kill N`.
fn read_counter(file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests;
