//! The same work on many items, on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tuner_core::activity;

/// Applies `work` to every item on up to `threads` threads, each with a state of its own. Results
/// are in the order of the items, whatever the order in which they came.
///
/// # Errors
/// The first error by that order.
pub(crate) fn in_order<T, S, R, E>(
    items: &[T],
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&T, &mut S) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E>
where
    T: Sync,
    R: Send,
    E: Send,
{
    activity::expect(items.len());
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let all = || {
        let mut state = state();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return;
            };
            let result = work(item, &mut state);
            activity::done();
            if let Ok(mut results) = results.lock() {
                results.push((index, result));
            }
        }
    };
    std::thread::scope(|scope| {
        // Where the system gives no more threads, those that are there do all the work.
        for _ in 1..threads.clamp(1, items.len().max(1)) {
            if std::thread::Builder::new()
                .spawn_scoped(scope, all)
                .is_err()
            {
                break;
            }
        }
        all();
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
