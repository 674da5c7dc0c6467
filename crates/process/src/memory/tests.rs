use super::*;

#[test]
fn the_smaller_of_machine_and_control_group_counts() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for part in ["proc", "sys/fs/cgroup"] {
        std::fs::create_dir_all(root.join(part)).unwrap();
    }
    assert_eq!(free_in(root), None);
    let write = |file: &str, text: &str| std::fs::write(root.join(file), text).unwrap();
    write("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    2048 kB\n");
    assert_eq!(free_in(root), Some(2048 << 10));
    write("sys/fs/cgroup/memory.max", "max\n");
    write("sys/fs/cgroup/memory.current", "1000\n");
    assert_eq!(free_in(root), Some(2048 << 10));
    write("sys/fs/cgroup/memory.max", "5000\n");
    assert_eq!(free_in(root), Some(4000));
}
