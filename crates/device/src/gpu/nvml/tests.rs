use super::*;

#[test]
fn a_machine_without_nvml_knows_nothing_and_does_not_fail() {
    assert_eq!(Monitor::default().health(), None);
    let _ = Monitor::open("GPU-0").health();
}

#[test]
fn idleness_set_clocks_and_a_power_limit_are_no_throttling() {
    let reasons = ThrottleReasons::GPU_IDLE | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING;
    assert!(names(reasons | ThrottleReasons::SW_POWER_CAP).is_empty());
    assert_eq!(
        names(reasons | ThrottleReasons::SW_THERMAL_SLOWDOWN),
        ["heat"]
    );
}
