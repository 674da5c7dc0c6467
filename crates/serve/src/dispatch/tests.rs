#[test]
fn a_gpu_is_shared_by_no_two_runs() {
    assert!(super::overlap("cuda:0", "cuda:0,1"));
    assert!(!super::overlap("cuda:0", "cuda:1,2"));
    assert!(!super::overlap("cuda:0", "vgpu:h100"));
    assert!(super::overlap("replay:/a", "replay:/a"));
}

#[test]
fn a_shortage_is_told_from_a_file_that_is_missing() {
    assert!(super::is_shortage(
        "NVRTC was not found\n  looked at /x/libnvrtc.so: cannot open shared object file: Too many open files"
    ));
    let shortage = std::io::Error::from(rustix::io::Errno::AGAIN);
    assert!(super::is_shortage(&format!(
        "cannot start the worker: {shortage}"
    )));
    assert!(!super::is_shortage(
        "NVRTC was not found\n  looked at /x: No such file or directory"
    ));
}
