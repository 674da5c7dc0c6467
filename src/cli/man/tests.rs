#[test]
fn every_command_that_is_shown_has_a_page() {
    let pages = super::pages().unwrap();
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    assert!(
        names.contains(&"tuner") && names.contains(&"tuner-run"),
        "{names:?}"
    );
    assert!(!names.contains(&"tuner-device-worker"), "{names:?}");
    for (name, page) in &pages {
        let text = String::from_utf8(page.clone()).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{name}: {text}");
    }
}
