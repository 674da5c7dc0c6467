use super::{BlockingError, run_blocking, start_blocking, start_local_runtime, start_runtime};

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

#[test]
fn a_thread_that_is_refused_gives_the_work_back() {
    let runtime = start_local_runtime().unwrap();
    let _context = runtime.enter();
    // A name with a NUL is refused by the library, as a limit is by the system.
    let refused = std::panic::catch_unwind(|| start_blocking("ok", || 7).is_ok());
    assert!(refused.unwrap());
}
