use super::*;

#[test]
fn a_number_beyond_the_limit_cannot_be_read() {
    for (text, right) in [
        ("1", true),
        ("1024", true),
        ("0", false),
        ("1025", false),
        ("65535", false),
    ] {
        assert_eq!(serde_json::from_str::<Jobs>(text).is_ok(), right, "{text}");
        assert_eq!(text.parse::<Jobs>().is_ok(), right, "{text}");
    }
}
