use super::OomKills;
use std::path::Path;

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_counter_that_grew_names_the_group_or_the_machine() {
    for (line, file) in [
        ("0::/a/b\n", "sys/fs/cgroup/a/b/memory.events"),
        ("0::/host/path\n", "sys/fs/cgroup/memory.events"),
        (
            "5:cpu,memory:/x\n",
            "sys/fs/cgroup/memory/x/memory.oom_control",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "proc/self/cgroup", line);
        write(root, "proc/vmstat", "nr_free_pages 1\noom_kill 7\n");
        write(root, file, "oom 3\noom_kill 2\n");
        let before = OomKills::read_in(root);
        assert_eq!(OomKills::read_in(root).cause_since(&before), None);
        write(root, "proc/vmstat", "oom_kill 8\n");
        let machine = OomKills::read_in(root).cause_since(&before).unwrap();
        assert!(machine.contains("machine's memory"), "{machine}");
        write(root, file, "oom 3\noom_kill 3\n");
        let group = OomKills::read_in(root).cause_since(&before).unwrap();
        assert!(group.contains("control group"), "{group}");
    }
}

#[test]
fn without_counters_nothing_is_claimed() {
    let folder = tempfile::tempdir().unwrap();
    let before = OomKills::read_in(folder.path());
    write(folder.path(), "proc/vmstat", "oom_kill 8\n");
    assert_eq!(OomKills::read_in(folder.path()).cause_since(&before), None);
}
