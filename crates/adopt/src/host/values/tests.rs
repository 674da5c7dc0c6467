use super::number;

#[test]
fn literals_have_the_value_that_cpp_gives_them() {
    for (text, value) in [
        ("010", Some("8")),
        ("0b101u", Some("5")),
        ("0x1Ful", Some("31")),
        ("1'000", Some("1000")),
        ("0", Some("0")),
        ("089", None),
        ("0.5f", Some("0.5")),
    ] {
        let read = number(text).map(|expr| expr.to_string());
        assert_eq!(read.as_deref(), value, "{text}");
    }
}
