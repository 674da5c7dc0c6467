//! Whether the kernel's out-of-memory killer was at work, as its counters say.

use std::path::Path;

/// How many processes it has ended, by each counter that can be read here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OomKills {
    /// In this process's control group.
    cgroup: Option<u64>,
    /// On the whole machine.
    machine: Option<u64>,
}

impl OomKills {
    /// The counters now.
    pub(crate) fn read() -> Self {
        Self::read_in(Path::new("/"))
    }

    fn read_in(root: &Path) -> Self {
        let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        Self {
            cgroup: groups.lines().find_map(|line| of_group(root, line)),
            machine: counter(&root.join("proc/vmstat")),
        }
    }

    /// What a process that was ended by SIGKILL since then most likely died of, if these counters
    /// know.
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

/// The counter of a line of `/proc/self/cgroup`: `0::/path` (version 2) or `N:memory:/path` (1).
fn of_group(root: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
    let (mount, file) = if controllers.is_empty() {
        ("sys/fs/cgroup", "memory.events")
    } else if controllers.split(',').any(|name| name == "memory") {
        ("sys/fs/cgroup/memory", "memory.oom_control")
    } else {
        return None;
    };
    // In a container the path may be the host's, and the group is the mount's root.
    let mount = root.join(mount);
    counter(&mount.join(path).join(file)).or_else(|| counter(&mount.join(file)))
}

/// The value of the line `oom_kill N`.
fn counter(file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests;
