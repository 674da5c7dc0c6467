use super::*;

#[test]
fn a_round_of_slow_kernels_holds_fewer_changes() {
    assert_eq!(together(Some(10.0)), MAX_TOGETHER);
    assert_eq!(together(Some(20e3)), 3);
    assert_eq!(together(Some(1e6)), 1);
    assert_eq!(together(None), MAX_TOGETHER);
}

#[test]
fn an_interval_with_one_shows_nothing() {
    let cost = |interval| Cost {
        ratio: 1.0,
        interval,
        base_us: None,
        flags: Vec::new(),
    };
    let sharp = cost([0.9995, 1.0005]);
    assert!(cost([0.999, 1.0]).same(&sharp) && !cost([1.001, 1.01]).same(&sharp));
    // A base that differs from itself widens the range that counts as equal.
    let askew = cost([1.002, 1.003]);
    assert!(cost([1.001, 1.01]).same(&askew) && !cost([0.99, 0.999]).same(&askew));
}
