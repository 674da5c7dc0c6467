use super::*;

const LIMITS: DeviceLimits = DeviceLimits {
    sm_count: 108,
    shared_bytes: 166_912,
    cc: 80,
    max_threads: 1024,
};

/// Returns the refusal of one launch.
fn refusal(grid: [u32; 3], block: [u32; 3], shared_bytes: u32) -> Option<String> {
    let launch = PlanLaunch {
        shared_bytes,
        ..PlanLaunch::new("f", grid, block, Vec::new())
    };
    explain_refusal(
        &[PlanLaunch::new("g", [1; 3], [1; 3], Vec::new()), launch],
        &LIMITS,
    )
}

#[test]
fn launches_at_the_limits_are_not_refused() {
    assert_eq!(
        refusal([1 << 30, 65_535, 65_535], [1024, 1, 1], 166_912),
        None
    );
    assert_eq!(refusal([1; 3], [4, 4, 64], 0), None);
}

#[test]
fn each_limit_is_named() {
    let cases = [
        (
            refusal([1; 3], [4096, 1, 1], 0),
            "4096 threads; a block has at most 1024",
        ),
        (refusal([1; 3], [32, 33, 1], 0), "1056 threads"),
        (refusal([1; 3], [u32::MAX; 3], 0), "at most 1024"),
        (refusal([1; 3], [1, 1, 65], 0), "and 64 in z"),
        (
            refusal([1, 65_536, 1], [1; 3], 0),
            "grid [1, 65536, 1] of `f`",
        ),
        (refusal([1, 1, 65_536], [1; 3], 0), "65535"),
        (
            refusal([1; 3], [1; 3], 166_913),
            "166913 bytes of shared memory, the device has 166912",
        ),
    ];
    for (found, wanted) in cases {
        let found = found.unwrap();
        assert!(found.contains(wanted), "{found}");
    }
}
