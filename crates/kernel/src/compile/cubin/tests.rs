#[test]
fn bytes_that_are_no_cubin_are_an_error() {
    assert!(super::read(b"").is_err());
    assert!(super::read(b"\x7fELF but not really").is_err());
}
