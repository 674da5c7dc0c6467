use super::*;

fn limits(cc: u32, sm_count: u32) -> DeviceLimits {
    DeviceLimits {
        sm_count,
        shared_bytes: 101_376,
        cc,
        max_threads: 1024,
    }
}

#[test]
fn a_gpu_is_imitated_by_its_own_table_or_the_nearest_of_its_generation() {
    let name = |name: &str, cc, sms| like(name, &limits(cc, sms)).map(|arch| arch.name);
    assert_eq!(name("NVIDIA L4", 89, 58), Some("l4"));
    assert_eq!(name("NVIDIA L40S", 89, 142), Some("l40s"));
    // An L40 is not an `l4`: its 142 multiprocessors are nearest to those of the L40S.
    assert_eq!(name("NVIDIA L40", 89, 142), Some("l40s"));
    assert_eq!(name("NVIDIA H100 80GB HBM3", 90, 132), Some("h100"));
    assert_eq!(name("NVIDIA GeForce RTX 3080", 86, 68), Some("a10g"));
    assert_eq!(name("vgpu:a6000", 86, 84), Some("a6000"));
    assert_eq!(name("vgpu:h100@1500MHz", 90, 132), Some("h100@1500MHz"));
    assert_eq!(name("NVIDIA B200", 100, 148), Some("b200"));
    assert_eq!(name("NVIDIA V100", 70, 80), None);
}
