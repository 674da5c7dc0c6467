use super::wrong_target;

#[test]
fn code_for_a_newer_gpu_is_refused_and_code_for_an_older_one_runs() {
    assert_eq!(wrong_target("sm_80", 90), None);
    assert_eq!(wrong_target("sm_90", 90), None);
    assert_eq!(wrong_target("sm_90a", 90), None);
    for (target, cc) in [
        ("sm_90", 80),
        ("sm_90a", 100),
        ("sm_120", 90),
        ("sm_90a", 89),
    ] {
        assert!(wrong_target(target, cc).is_some(), "{target} on {cc}");
    }
}
