use super::read;

#[test]
fn every_line_of_the_table_can_be_read() {
    let (_, bad) = read(include_str!("../encodings.txt"));
    assert!(bad.is_empty(), "{bad:#?}");
}
