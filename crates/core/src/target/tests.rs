use super::*;

fn target(text: &str) -> ComputeTarget {
    text.parse().unwrap()
}

#[test]
fn a_target_reads_as_it_prints() {
    for text in ["sm_75", "sm_90", "sm_90a", "sm_100f", "sm_121a"] {
        assert_eq!(target(text).to_string(), text);
    }
    for text in [
        "",
        "sm_",
        "sm_a",
        "sm_9",
        "sm_90b",
        "sm_90aa",
        "compute_90",
        "sm_+90",
        "sm_9000",
    ] {
        assert!(text.parse::<ComputeTarget>().is_err(), "{text}");
    }
}

#[test]
fn a_template_asks_for_features_that_the_device_may_lack() {
    use ArchFeatures::{A, F};
    for (device, asked, chosen) in [
        ("sm_90", None, "sm_90"),
        ("sm_90", Some(A), "sm_90a"),
        ("sm_90", Some(F), "sm_90"),
        ("sm_89", Some(A), "sm_89"),
        ("sm_100", Some(F), "sm_100f"),
        ("sm_120", Some(A), "sm_120a"),
        ("sm_100f", Some(A), "sm_100f"),
        ("sm_90a", None, "sm_90a"),
    ] {
        assert_eq!(
            target(device).with_features(asked),
            target(chosen),
            "{device}"
        );
    }
    let specific = |text| {
        target(text)
            .architecture_specific()
            .map(|it| it.to_string())
    };
    assert_eq!(specific("sm_90"), Some("sm_90a".to_owned()));
    assert_eq!(specific("sm_89"), None);
    assert_eq!(specific("sm_100f"), None);
}

#[test]
fn a_requested_target_must_run_on_the_gpu() {
    assert_eq!(ComputeTarget::choose(90, None), Ok(target("sm_90")));
    assert_eq!(
        ComputeTarget::choose(90, Some("sm_90a")),
        Ok(target("sm_90a"))
    );
    assert_eq!(
        ComputeTarget::choose(90, Some("sm_80")),
        Ok(target("sm_80"))
    );
    let refused = |text| {
        ComputeTarget::choose(80, Some(text))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused("sm_90a"),
        "--arch sm_90a: the code is for sm_90a, which runs on compute capability 9.0 only; the GPU \
         is sm_80; leave --arch out, or choose such a GPU with --device"
    );
    assert!(refused("hopper").contains("type --arch sm_90"));
}

#[test]
fn a_suffix_bounds_the_gpus_that_run_the_code() {
    for (code, cc, runs) in [
        ("sm_80", 90, true),
        ("sm_90", 80, false),
        ("sm_90a", 90, true),
        ("sm_90a", 100, false),
        ("sm_100a", 103, false),
        ("sm_100f", 103, true),
        ("sm_100f", 120, false),
        ("sm_103f", 100, false),
    ] {
        assert_eq!(target(code).runs_on(cc), runs, "{code} on {cc}");
        assert_eq!(target(code).refusal(cc).is_none(), runs);
    }
}
