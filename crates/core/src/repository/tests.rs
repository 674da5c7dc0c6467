use super::{compare, find_commit, within};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Runs git in a folder, with only the folder's configuration; panics without git.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null");
    git.args(["-c", "user.name=t", "-c", "user.email=t@t"]);
    let output = git.args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?} {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository with the file `templates/kernel.cu`, committed.
fn repository() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("templates")).unwrap();
    let file = folder
        .path()
        .canonicalize()
        .unwrap()
        .join("templates/kernel.cu");
    std::fs::write(&file, "one").unwrap();
    git(folder.path(), &["init", "-q"]);
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "-qm", "one"]);
    (folder, file)
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap()
}

#[test]
fn nothing_that_a_repository_names_is_run() {
    let (folder, file) = repository();
    let ran = folder.path().join("ran");
    let program = folder.path().join("program");
    std::fs::write(
        &program,
        format!("#!/bin/sh\ntouch {}\ncat\n", ran.display()),
    )
    .unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    std::fs::write(
        folder.path().join(".gitattributes"),
        "*.cu filter=f diff=f\n",
    )
    .unwrap();
    for name in [
        "core.fsmonitor",
        "filter.f.clean",
        "filter.f.process",
        "diff.f.textconv",
        "diff.f.command",
        "diff.external",
        "core.pager",
        "core.sshCommand",
        "core.alternateRefsCommand",
    ] {
        git(folder.path(), &["config", name, program]);
    }
    // Git fetches missing objects of a partial clone by a program that the configuration names.
    let url = format!("ext::{program}");
    for (name, value) in [
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", url.as_str()),
        ("remote.origin.promisor", "true"),
        ("protocol.ext.allow", "always"),
    ] {
        git(folder.path(), &["config", name, value]);
    }
    std::fs::write(&file, "two").unwrap();
    let state = compare(folder_of(&file), vec![file.clone()]).unwrap();
    assert!(state.difference.is_some());
    find_commit(folder.path(), "HEAD", &[]).unwrap();
    assert!(find_commit(folder.path(), &"1".repeat(40), &[]).is_err());
    assert!(!ran.exists());
    // The trap works: git itself runs the program.
    git(folder.path(), &["status"]);
    assert!(ran.exists());
}

#[test]
fn the_difference_depends_on_names_and_contents() {
    let (_folder, file) = repository();
    let hash = |files: Vec<PathBuf>| compare(folder_of(&file), files).unwrap().difference;
    assert_eq!(hash(vec![file.clone()]), None);
    std::fs::write(&file, "two").unwrap();
    let two = hash(vec![file.clone()]);
    assert!(two.is_some());
    std::fs::write(&file, "three").unwrap();
    assert_ne!(hash(vec![file.clone()]), two);
    std::fs::write(&file, "two").unwrap();
    assert_eq!(hash(vec![file.clone()]), two);
    let other = file.with_file_name("other.cu");
    std::fs::write(&other, "two").unwrap();
    assert_ne!(hash(vec![other]), two);
}

#[test]
fn commits_are_found_by_name_in_packs_and_worktrees() {
    let (folder, file) = repository();
    let first = git(folder.path(), &["rev-parse", "HEAD"]);
    std::fs::write(&file, "two").unwrap();
    git(folder.path(), &["commit", "-qam", "two"]);
    let second = git(folder.path(), &["rev-parse", "HEAD"]);
    git(folder.path(), &["tag", "-a", "-m", "v2", "v2"]);
    git(folder.path(), &["gc", "-q"]);
    let known = [
        first.clone(),
        second.clone(),
        "0".repeat(40),
        "x".to_owned(),
    ];
    let find = |name: &str| find_commit(folder.path(), name, &known);
    let both = vec![first.clone(), second.clone()];
    assert_eq!(find("v2").unwrap(), (second.clone(), both.clone()));
    assert_eq!(find(&second[..9]).unwrap(), (second.clone(), both));
    assert_eq!(
        find("HEAD~1").unwrap(),
        (first.clone(), vec![first.clone()])
    );
    assert!(find("v3").is_err());

    let elsewhere = tempfile::tempdir().unwrap();
    let tree = elsewhere.path().join("tree");
    git(
        folder.path(),
        &[
            "worktree",
            "add",
            "-q",
            "--detach",
            tree.to_str().unwrap(),
            &first,
        ],
    );
    let file = tree.canonicalize().unwrap().join("templates/kernel.cu");
    let state = compare(folder_of(&file), vec![file.clone()]).unwrap();
    assert_eq!((state.commit, state.difference.is_none()), (first, true));
}

#[test]
fn a_reader_that_blocks_is_left_behind() {
    let (_sender, receiver) = std::sync::mpsc::channel::<()>();
    let block = move || receiver.recv().map_err(|error| error.to_string());
    let why = within(Duration::from_millis(10), block).unwrap_err();
    assert!(why.contains("not read within"), "{why}");
}
