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

#[test]
fn every_field_of_a_row_is_a_column() {
    use tuner_core::record::LeaderboardRow;
    use utoipa::PartialSchema as _;
    let schema = serde_json::to_value(LeaderboardRow::schema()).unwrap();
    let fields = schema["properties"].as_object().unwrap();
    let fields: std::collections::BTreeSet<&str> = fields.keys().map(String::as_str).collect();
    let columns = super::COLUMNS.iter().map(|column| column.key);
    assert_eq!(columns.collect::<std::collections::BTreeSet<_>>(), fields);
}

#[test]
fn every_shown_column_has_a_place_and_an_order_of_omission_of_its_own() {
    let shown = super::shown_columns();
    let places: Vec<u8> = shown.iter().map(|shown| shown.place).collect();
    assert_eq!(places, (1..=14).collect::<Vec<u8>>());
    let mut dropped: Vec<u8> = shown.iter().filter_map(|shown| shown.dropped).collect();
    dropped.sort_unstable();
    assert_eq!(dropped, (1..=8).collect::<Vec<u8>>());
}
