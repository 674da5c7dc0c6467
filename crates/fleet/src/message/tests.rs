use super::*;

#[test]
fn nonsense_of_any_kind_is_an_error_with_a_sentence() {
    let pack = |value: serde_json::Value| rmp_serde::to_vec_named(&value).unwrap();
    let other = pack(serde_json::json!({"protocol": 7, "id": "x"}));
    let half = pack(serde_json::json!({"protocol": PROTOCOL}));
    let list = pack(serde_json::json!([]));
    let cut = &other[..other.len() - 1];
    for (bytes, hint) in [
        (&b""[..], "not a fleet message"),
        (&b"\xff\xfe\x00"[..], "not a fleet message"),
        (cut, "not a fleet message"),
        (&other[..], "protocol 7"),
        (&half[..], "not a fleet message"),
        (&list[..], "not a fleet message"),
    ] {
        let error = parse::<AnswerMessage>(bytes).unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
    }
    let large = vec![b' '; MESSAGE_BYTES_MAX + 1];
    assert!(matches!(
        parse::<AnswerMessage>(&large),
        Err(Malformed::TooLarge(_))
    ));
}
