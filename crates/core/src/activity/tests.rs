use super::{begin, now};

#[test]
fn an_activity_lasts_as_long_as_its_value() {
    let mine = |object: &str| now().iter().any(|one| one.object == object);
    let doing = begin("testing", "a unique thing");
    assert!(mine("a unique thing"));
    drop(doing);
    assert!(!mine("a unique thing"));
}
