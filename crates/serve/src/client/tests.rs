#[test]
fn events_are_read_and_comments_are_skipped() {
    assert_eq!(super::parse(":\n\n"), None);
    let read = super::parse("event: lag\ndata: {\"missed\":3}\n\n");
    assert_eq!(read, Some(("lag".to_owned(), "{\"missed\":3}".to_owned())));
}
