use super::Access;

#[test]
fn addresses_are_shown_without_secrets_and_wrong_ones_are_refused() {
    let access = Access::open("nats://hub:secret@host:4222,nats://other");
    assert_eq!(access.shown(), "nats://…@host:4222,nats://other");
    assert_eq!(access.servers().unwrap().len(), 2);
    for wrong in ["", "http://host", "nats://"] {
        let error = Access::open(wrong).servers().unwrap_err().to_string();
        assert!(error.contains("nats://HOST:4222"), "{wrong}: {error}");
    }
}
