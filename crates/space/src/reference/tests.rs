use super::*;

#[test]
fn no_key_function_or_device_name_is_without_its_meaning() {
    let text = reference();
    let bare: Vec<&str> = text.lines().filter(|line| line.ends_with("|  |")).collect();
    assert!(bare.is_empty(), "{bare:?}");
    for (name, ..) in FUNCTIONS {
        assert!(text.contains(&format!("| `{name}(")), "{name}");
    }
    for section in [
        "arguments",
        "launches",
        "reference",
        "gate",
        "arguments.fill",
    ] {
        assert!(text.contains(&format!("\n## `{section}`\n")), "{section}");
    }
}
