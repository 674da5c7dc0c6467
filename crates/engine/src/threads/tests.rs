use super::{BlockingError, run_blocking, start_runtime};

#[test]
fn blocking_work_has_the_context_of_its_runtime_and_its_panic_is_an_error() {
    let runtime = start_runtime("test", 2).unwrap();
    let sum = runtime.block_on(run_blocking("sum", || {
        let handle = tokio::runtime::Handle::current();
        handle.block_on(async { 20 + 1 }) * 2
    }));
    assert_eq!(sum.unwrap(), 42);
    let lost = runtime.block_on(run_blocking("lost", || -> u32 { panic!("by the test") }));
    assert!(matches!(lost, Err(BlockingError::Panicked(why)) if why.contains("by the test")));
}
