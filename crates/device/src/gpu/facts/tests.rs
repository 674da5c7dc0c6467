use super::*;

#[test]
fn a_machine_without_a_driver_is_an_answer_and_no_panic() {
    // The call must return on any machine.
    let _ = list();
}

#[test]
fn versions_and_identities_read_as_nvidia_writes_them() {
    assert_eq!(cuda_version(12_040), (12, 4));
    assert_eq!(cuda_version(13_000), (13, 0));
    let bytes: [u8; 16] = std::array::from_fn(|index| index as u8);
    let tail = "00010203-0405-0607-0809-0a0b0c0d0e0f";
    assert_eq!(uuid("NVIDIA H200", bytes), format!("GPU-{tail}"));
    let part = "NVIDIA A100-SXM4-40GB MIG 1g.5gb";
    assert_eq!(uuid(part, bytes), format!("MIG-{tail}"));
    let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release";
    assert_eq!(version_in(text).as_deref(), Some("580.65.06"));
}
