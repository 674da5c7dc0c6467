#[test]
fn times_are_shown_to_five_digits() {
    for (us, expected) in [
        (0.123456, "0.1235"),
        (3.2, "3.2000"),
        (12.34567, "12.346"),
        (123456.7, "123457"),
    ] {
        assert_eq!(super::digits(us), expected);
    }
}
