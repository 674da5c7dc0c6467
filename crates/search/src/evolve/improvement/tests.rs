use super::*;

#[test]
fn known_values_are_met() {
    let close = |a: f64, b: f64| (a - b).abs() < 1e-5;
    assert!(close(normal_cdf(0.0), 0.5));
    assert!(close(normal_cdf(1.96), 0.975_002));
    assert!(close(log_improvement(0.0), (1.0 / (2.0 * PI).sqrt()).ln()));
    assert!(close(log_improvement(8.0), 8.0_f64.ln()));
}

#[test]
fn it_rises_everywhere_even_where_the_series_takes_over() {
    let all: Vec<f64> = (-400..100)
        .map(|u| log_improvement(f64::from(u) / 10.0))
        .collect();
    assert!(all.is_sorted_by(|a, b| a < b));
}
