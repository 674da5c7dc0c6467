use super::Target;

fn choose(device: Option<&str>, arch: Option<&str>) -> Result<Target, String> {
    let device = device.map(|text| text.parse().unwrap());
    Target::choose(device.as_ref(), arch).map_err(|error| error.to_string())
}

#[test]
fn a_target_alone_is_not_run_and_a_device_is() {
    let target = choose(None, Some("sm_89")).unwrap();
    assert_eq!((target.device.as_str(), target.runner), ("sm_89", None));
    assert_eq!(target.limits.shared_bytes, 101_376);
    let target = choose(Some("vgpu:a100"), None).unwrap();
    assert_eq!(
        (target.device.as_str(), &*target.arch.to_string()),
        ("vgpu:a100", "sm_80")
    );
    let target = choose(Some("vgpu:h100"), Some("sm_90a")).unwrap();
    assert_eq!(
        (target.device.as_str(), &*target.arch.to_string()),
        ("vgpu:h100", "sm_90a")
    );
    assert_eq!(choose(None, None).unwrap().device, "vgpu:h100");
}

#[test]
fn what_cannot_be_checked_for_is_told_what_to_type() {
    assert!(
        choose(Some("replay:x.json"), None)
            .unwrap_err()
            .contains("--device vgpu:NAME")
    );
    assert!(
        choose(None, Some("hopper"))
            .unwrap_err()
            .contains("--arch sm_90")
    );
    let refused = choose(Some("vgpu:a100"), Some("sm_90a")).unwrap_err();
    assert!(refused.contains("compute capability 9.0 only"), "{refused}");
}
