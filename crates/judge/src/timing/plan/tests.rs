use super::*;

#[test]
fn a_sample_lasts_as_long_as_it_should_and_holds_one_launch_at_least() {
    let settings = Settings::default();
    assert_eq!(settings.launches(5.0), 300);
    assert_eq!(settings.launches(0.5), 500);
    assert_eq!(settings.launches(1e6), 1);
    assert_eq!(settings.launches(f64::NAN), 500);
}
