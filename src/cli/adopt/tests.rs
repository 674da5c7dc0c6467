use super::beyond;

#[test]
fn how_far_an_access_goes_is_read_from_the_message() {
    let said = |at: i64| {
        beyond(&format!(
            "k.cu:7: a read of 4 bytes at byte {at} of `x`, which has 1024 bytes"
        ))
    };
    assert_eq!(said(1024), Some(("x".to_owned(), 2)));
    assert_eq!(said(2047), Some(("x".to_owned(), 4)));
    assert_eq!(said(3000), Some(("x".to_owned(), 4)));
    assert_eq!(said(-4), None);
    assert_eq!(said(1 << 40), None);
    assert_eq!(beyond("a read of shared memory"), None);
}
