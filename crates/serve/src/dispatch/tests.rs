#[test]
fn a_gpu_is_shared_by_no_two_runs() {
    assert!(super::overlap("cuda:0", "cuda:0,1"));
    assert!(!super::overlap("cuda:0", "cuda:1,2"));
    assert!(!super::overlap("cuda:0", "vgpu:h100"));
    assert!(super::overlap("replay:/a", "replay:/a"));
}
