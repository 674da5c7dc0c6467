//! Times that the metric of a search space makes impossible.

/// Factor by which a time may be below its lower bound, which is made of rounded figures of a device.
pub const IMPOSSIBLE_FACTOR: f64 = 1.5;

/// Explains a time below the lower bound that the operations and bytes of a metric set, both in
/// microseconds; `None` if it is possible.
#[must_use]
pub fn explain_impossible(time_us: f64, least_us: f64) -> Option<String> {
    (least_us > IMPOSSIBLE_FACTOR * time_us).then(|| {
        format!(
            "{:.1} times faster than the device allows: `metric` of the search space counts more \
             operations or bytes than the problem needs, or in another unit; correct `flops` and \
             `bytes` there",
            least_us / time_us
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_far_below_its_bound_is_impossible() {
        assert_eq!(explain_impossible(10.0, 9.0), None);
        assert_eq!(explain_impossible(10.0, 15.0), None);
        let why = explain_impossible(10.0, 30.0).unwrap();
        assert!(why.starts_with("3.0 times faster"), "{why}");
        assert!(explain_impossible(0.0, 1.0).is_some());
    }
}
