use super::{forget, happened, keep, note};
use tuner_store::RunId;

#[test]
fn a_report_is_kept_under_the_name_of_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("t.db");
    let run = RunId::from_text("r-1");
    assert_eq!(keep(&db, &run), None);
    std::fs::write(note(&db), "a panic").unwrap();
    assert!(happened(&db));
    let kept = keep(&db, &run).unwrap();
    assert!(!happened(&db), "the next daemon does not count it");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "a panic");
    forget(&db);
    assert!(kept.ends_with("t.db-crash-r-1.txt") && kept.exists());
}
