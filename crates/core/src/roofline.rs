//! Times that the metric of a search space makes impossible.

/// Factor by which a time may be below its floor: caches hold what was moved before.
pub const IMPOSSIBLE_FACTOR: f64 = 1.5;

/// Explains a time below the floor that the operations and bytes of a metric set, both in
/// microseconds; `None` if it is possible.
#[must_use]
pub fn explain_impossible(time_us: f64, floor_us: f64) -> Option<String> {
    (floor_us > IMPOSSIBLE_FACTOR * time_us).then(|| {
        format!(
            "{:.1} times faster than the roofline allows: `metric` of the search space counts more \
             operations or bytes than the problem needs, or in another unit; correct `flops` and \
             `bytes` there",
            floor_us / time_us
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_caches_cannot_explain_is_impossible() {
        assert_eq!(explain_impossible(10.0, 9.0), None);
        assert_eq!(explain_impossible(10.0, 15.0), None);
        let why = explain_impossible(10.0, 30.0).unwrap();
        assert!(why.starts_with("3.0 times faster"), "{why}");
        assert!(explain_impossible(0.0, 1.0).is_some());
    }
}
