use super::*;

#[test]
fn selectors_parse_and_print_alike() {
    for text in [
        "auto",
        "cuda:3",
        "cuda:0,2",
        "vgpu:a100",
        "vgpu:h100@1500MHz",
        "replay:dir/x:y.json.gz",
    ] {
        assert_eq!(text.parse::<DeviceSelector>().unwrap().to_string(), text);
    }
    assert_eq!("cuda".parse(), Ok(DeviceSelector::Cuda(0)));
    assert_eq!(
        "vgpu:H100".parse(),
        Ok(DeviceSelector::Vgpu("h100".to_owned()))
    );
    assert_eq!(
        "vgpu:H100@1500mhz".parse(),
        Ok(DeviceSelector::Vgpu("h100@1500MHz".to_owned()))
    );
}

#[test]
fn a_wrong_selector_is_told_what_to_type() {
    for (text, hint) in [
        ("gpu", "use auto, cuda"),
        ("vgpu:b300", "choose one of: l4, a100"),
        ("vgpu:b300@1500MHz", "choose one of: l4, a100"),
        ("vgpu:h100@fast", "such as vgpu:h100@1500MHz"),
        ("cuda:x", "cuda:0"),
        ("replay:", "replay:FILE"),
    ] {
        let message = text.parse::<DeviceSelector>().unwrap_err().to_string();
        assert!(message.contains(hint), "{text}: {message}");
    }
}
