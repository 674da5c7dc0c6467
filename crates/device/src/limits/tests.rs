use super::*;

#[test]
fn every_gpu_of_the_contract_has_limits() {
    assert_eq!(
        names(),
        "l4, a100, a4000, a6000, rtx2080ti, rtx3090, rtx4090, h100, h200, b200, rtx5090, gh200, \
         l40s, t4, a10g"
    );
    for name in names().split(", ") {
        let limits = by_name(name).unwrap();
        assert!(limits.sm_count > 0);
        assert_eq!(limits.shared_bytes, shared_bytes(limits.cc), "{name}");
    }
    assert_eq!(by_name("nope"), None);
}
