use super::*;

#[test]
fn excused_elements_are_left_out_of_ranges() {
    let one = |from: u64, to: u64| std::iter::once(from..to).collect::<Vec<_>>();
    assert_eq!(without(&one(0, 10), &one(3, 5)), [0..3, 5..10]);
    assert_eq!(without(&one(0, 10), &one(0, 4)), one(4, 10));
    assert_eq!(without(&one(0, 10), &one(8, 20)), one(0, 8));
    assert!(without(&one(2, 4), &one(0, 9)).is_empty());
    assert_eq!(without(&[0..3, 6..9], &one(2, 7)), [0..2, 7..9]);
}
