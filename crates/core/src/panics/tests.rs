#[test]
fn a_panic_leaves_its_message_place_and_stack() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report");
    super::report_to(path.clone());
    let caught = std::panic::catch_unwind(|| panic!("seven is no even number"));
    let _ = std::panic::take_hook();
    assert!(caught.is_err());
    let text = std::fs::read_to_string(path).unwrap();
    for part in [
        "seven is no even number",
        "panics/tests.rs",
        "arguments",
        "tuner ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
