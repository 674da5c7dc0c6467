use super::*;

#[test]
fn folders_and_files_are_made_for_this_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("a/b");
    let made = create_folder(&root, &["c", "d"]).unwrap();
    assert_eq!(made, root.join("c/d"));
    write_file(&made.join("file"), &[b"one ", b"two"]).unwrap();
    write_file(&made.join("file"), &[b"three"]).unwrap();
    assert_eq!(std::fs::read(made.join("file")).unwrap(), b"three");
    assert_eq!(std::fs::read_dir(&made).unwrap().count(), 1);
    for path in [
        root.clone(),
        root.join("c"),
        made.clone(),
        made.join("file"),
    ] {
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o077, 0);
    }
    open_file(&made.join("file")).unwrap();
}

#[test]
fn what_belongs_to_another_user_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let facts = std::fs::metadata(folder.path()).unwrap();
    check_rights(folder.path(), &facts, facts.uid()).unwrap();
    let refused = check_rights(folder.path(), &facts, facts.uid() + 1).unwrap_err();
    assert!(refused.to_string().contains("another user"), "{refused}");
}

#[test]
fn links_and_fifos_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("file"), "x").unwrap();
    std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
    std::os::unix::fs::symlink(folder.path(), path("folder")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(path("fifo"))
        .status();
    assert!(made.unwrap().success());
    for name in ["link", "fifo", "folder"] {
        assert!(open_file(&path(name)).is_err(), "{name}");
    }
    assert!(create_folder(&path("folder"), &["below"]).is_err());
    assert!(!path("below").exists());
    assert!(create_folder(&path("file"), &[]).is_err());
}
