use super::*;

#[test]
fn the_narrowest_margin_is_kept() {
    let mut margin = Margin::default();
    for (queued, window, late) in [
        (50, 100_000, false),
        (90, 100_000, false),
        (60, 200_000, true),
    ] {
        margin.note(Duration::from_micros(queued), window, late);
    }
    assert_eq!((margin.queued_us.round(), margin.window_us), (90.0, 100.0));
    assert!(margin.late);
}

#[test]
fn a_clock_that_settles_is_told_by_its_second_half() {
    let clocks: Vec<f64> = (0..20)
        .map(|n| if n < 10 { 1900.0 } else { 1500.0 })
        .collect();
    let range = range(&clocks).unwrap();
    assert_eq!(
        (range.first, range.lowest, range.highest),
        (1900.0, 1500.0, 1500.0)
    );
    assert_eq!(super::range(&[]), None);
}
