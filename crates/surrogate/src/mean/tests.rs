use super::*;

#[test]
fn it_goes_through_its_points_and_back_to_the_mean_far_away() {
    let points: Vec<Vec<f64>> = (0..12).map(|i| vec![f64::from(i) / 12.0]).collect();
    let values: Vec<f64> = points.iter().map(|p| 5.0 + (6.0 * p[0]).sin()).collect();
    let mean = Mean::fit(&points, &values, &[0], -0.5);
    assert!((mean.predict(&[0.29]) - 5.0 - (6.0_f64 * 0.29).sin()).abs() < 0.02);
    let centre = values.iter().sum::<f64>() / 12.0;
    assert!((mean.predict(&[1e4]) - centre).abs() < 1e-6);
}
