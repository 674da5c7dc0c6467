use std::path::Path;

#[test]
fn a_failed_write_leaves_nothing_behind_and_a_good_one_replaces_through_links() {
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (
        directory.path().join("a.h"),
        directory.path().join("link.h"),
    );
    super::write(&file, b"one").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    super::write(&link, b"two").unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"two");
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    assert!(super::write(Path::new("/nowhere/at/all.h"), b"").is_err());
    super::write(Path::new("/dev/null"), b"x").unwrap();
}

#[test]
fn a_link_at_the_temporary_name_is_not_written_through() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let temporary = path(&format!(".a.h.{}.tmp", std::process::id()));
    std::fs::write(path("theirs"), b"theirs").unwrap();
    std::os::unix::fs::symlink(path("theirs"), temporary).unwrap();
    super::write(&path("a.h"), b"ours").unwrap();
    assert_eq!(std::fs::read(path("theirs")).unwrap(), b"theirs");
    assert_eq!(std::fs::read(path("a.h")).unwrap(), b"ours");
    assert!(!path("a.h").is_symlink());
}

#[test]
fn a_link_to_itself_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("loop");
    std::os::unix::fs::symlink(&link, &link).unwrap();
    let error = super::write(&link, b"x").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ELOOP), "{error}");
    assert!(link.is_symlink());
}

#[test]
fn a_fifo_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let error = super::write(&fifo, b"x").unwrap_err();
    assert!(error.to_string().contains("FIFO"), "{error}");
}
