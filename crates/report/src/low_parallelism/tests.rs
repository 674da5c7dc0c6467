use super::*;

fn timed(time_us: f64, flops: f64) -> TimedProblem {
    TimedProblem {
        problem: "small".to_owned(),
        time_us,
        label: "predicted",
        blocks: Some(132),
        tensor: true,
        flops: Some(flops),
        bytes: Some(1e6),
    }
}

#[test]
fn few_blocks_a_distant_floor_and_growing_costs_are_each_told() {
    let arch = Arch::by_name("h100").unwrap();
    assert!(few_blocks(131, arch.sm_count).is_some());
    assert!(few_blocks(132, arch.sm_count).is_none());
    let (floor, _) = floor_us(Some(1e9), Some(1e6), true, arch).unwrap();
    assert!(timed(19.0 * floor, 1e9).far_from_floor(arch).is_none());
    assert!(timed(21.0 * floor, 1e9).far_from_floor(arch).is_some());
    let least = arch.least_us(1e9, 1e6, true);
    assert!(timed(0.9 * least, 1e9).below_floor(arch).is_none());
    assert!(timed(0.5 * least, 1e9).below_floor(arch).is_some());
    let small = timed(10.0, 1e9);
    let against = |time: f64| timed(time, 4e9).growth(std::slice::from_ref(&small));
    assert!(against(59.0).is_none());
    assert!(against(61.0).unwrap().contains("small"));
    // A larger problem with cheaper operations is not a reason to warn.
    assert!(small.growth(&[timed(1.0, 4e9)]).is_none());
}
