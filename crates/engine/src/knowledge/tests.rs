use super::*;

#[test]
fn a_csv_of_predictions_is_read_and_a_row_without_a_time_has_failed() {
    let text = b"BM,fast,time_us,registers\n64,true,12.5,40\n128,false,,\n";
    let rows = csv_rows(text).unwrap();
    assert_eq!(rows[0].1, Micros::new(12.5));
    assert_eq!(rows[0].0[0], ("BM".to_owned(), Value::Int(64)));
    assert_eq!(rows[0].0[1], ("fast".to_owned(), Value::Bool(true)));
    assert_eq!(rows[1].1, None);
    assert!(csv_rows(b"BM\n64\n").is_err());
}
