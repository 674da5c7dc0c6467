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
    let memory = std::io::Error::from(rustix::io::Errno::NOMEM);
    assert!(super::is_shortage(&memory.to_string()));
    assert!(!super::is_shortage(
        "NVRTC was not found\n  looked at /x: No such file or directory"
    ));
}

#[test]
fn a_shortage_puts_a_run_back_into_the_queue_whoever_met_it() {
    use super::{JobError, JobState, LiveRun, verdict};
    use tuner_store::StoreError;
    let run = LiveRun::new(super::run_view(super::RunRow::default()), 0.0);
    let path = std::path::Path::new("t.db");
    let state = |error: JobError| verdict(&Err(error), &run).0;
    let no_thread = std::io::Error::from(rustix::io::Errno::AGAIN).to_string();
    let store = StoreError::broken(path, format!("the database gets no thread ({no_thread})"));
    assert_eq!(state(JobError::Store(store)), JobState::Queued);
    let failed = anyhow::anyhow!("cannot start a thread: {no_thread}");
    assert_eq!(state(JobError::Failed(failed)), JobState::Queued);
    let damaged = StoreError::broken(path, "a row contradicts another");
    assert_eq!(state(JobError::Store(damaged)), JobState::Failed);
}
