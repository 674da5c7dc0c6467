//! Commits and dirty flags, as git has them.

use crate::program::git;
use tuner_core::provenance::of_files;

#[test]
fn a_template_names_its_commit_and_only_its_own_edits_make_it_dirty() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    std::fs::create_dir(file("templates")).unwrap();
    std::fs::write(file("templates/kernel.cu"), "one").unwrap();
    std::fs::write(file("space.yaml"), "one").unwrap();
    std::fs::write(file(".gitignore"), "ignored.cu").unwrap();
    git(directory.path(), &["init", "-q"]);

    let template = file("templates/kernel.cu");
    let space = file("space.yaml");
    let files = [template.as_path(), space.as_path()];
    let (none, note) = of_files(&files, None, None);
    assert_eq!((none.commit, none.dirty), (None, false));
    assert!(
        note.unwrap()
            .contains("in no git tree with a commit that can be read")
    );

    git(directory.path(), &["add", "."]);
    git(directory.path(), &["commit", "-qm", "one"]);
    let (clean, note) = of_files(&files, Some("580".to_owned()), None);
    assert_eq!(clean.commit.as_ref().unwrap().len(), 40);
    assert_eq!((clean.dirty, note), (false, None));
    assert_eq!(clean.driver.as_deref(), Some("580"));

    std::fs::write(file("notes.txt"), "unrelated").unwrap();
    assert!(!of_files(&files, None, None).0.dirty);
    std::fs::write(&space, "two").unwrap();
    let (dirty, _) = of_files(&files, None, None);
    assert_eq!((dirty.commit, dirty.dirty), (clean.commit, true));

    // Neither an untracked nor an ignored template is what the commit says.
    for name in ["new.cu", "ignored.cu"] {
        std::fs::write(file(name), "x").unwrap();
        assert!(of_files(&[&file(name)], None, None).0.dirty, "{name}");
    }
}

#[test]
fn without_a_tree_there_is_no_commit_and_a_note_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kernel.cu");
    std::fs::write(&file, "one").unwrap();
    let (provenance, note) = of_files(&[&file], None, None);
    assert_eq!((provenance.commit, provenance.dirty), (None, false));
    assert!(note.unwrap().contains("stored without one ("));
    assert!(!provenance.host.is_empty());
}
