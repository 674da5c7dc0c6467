use super::*;

fn sizes(of: &[(&str, i64)]) -> Vec<(String, Value)> {
    let sized = |(name, size): &(&str, i64)| ((*name).to_owned(), Value::Int(*size));
    of.iter().map(sized).collect()
}

#[test]
fn ragged_sizes_are_odd_and_aligned_ones_keep_their_powers_of_two() {
    let original = sizes(&[("N", 1_000_000), ("M", 4096), ("B", 8)]);
    let scaled = sizes(&[("N", 62_500), ("M", 2048), ("B", 8)]);
    assert_eq!(
        shaped(&original, &scaled, true),
        sizes(&[("N", 62_497), ("M", 2045), ("B", 8)])
    );
    assert_eq!(
        shaped(&original, &scaled, false),
        sizes(&[("N", 62_464), ("M", 2048), ("B", 8)])
    );
}
