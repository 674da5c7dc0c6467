use super::*;

#[test]
fn every_gpu_of_the_contract_has_limits() {
    assert!(names().starts_with("l4, a100, "), "{}", names());
    for name in names().split(", ") {
        let limits = by_name(name).unwrap();
        assert!(limits.sm_count > 0);
        assert_eq!(limits.shared_bytes, shared_bytes(limits.cc), "{name}");
    }
    assert_eq!(by_name("nope"), None);
}
