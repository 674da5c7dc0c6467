//! Parallel map over items.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use tuner_core::activity;

/// Applies `work` to every item on up to `threads` threads, each with a separate state. Results are
/// in the order of the items, not of completion.
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
    let mut all = Vec::with_capacity(items.len());
    in_order_each(items, threads, state, work, |_, result| all.push(result))?;
    Ok(all)
}

/// Like [`in_order`], but passes on each result as soon as it and all before it are done.
///
/// # Errors
/// The first error by that order; no item is started after it.
pub(crate) fn in_order_each<T, S, R, E>(
    items: &[T],
    threads: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&T, &mut S) -> Result<R, E> + Sync,
    mut tell: impl FnMut(usize, R),
) -> Result<(), E>
where
    T: Sync,
    R: Send,
    E: Send,
{
    activity::expect(items.len());
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    let all = |send: mpsc::Sender<(usize, Result<R, E>)>| {
        let mut state = state();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return;
            };
            let result = work(item, &mut state);
            activity::done();
            if send.send((index, result)).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            let (all, send) = (&all, send.clone());
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || all(send));
            started += usize::from(thread.is_ok());
        }
        if started == 0 {
            // Without threads from the system, this one does all the work.
            all(send.clone());
        }
        // The loop below ends when the last sender is dropped.
        drop(send);
        let mut waiting = BTreeMap::new();
        let mut due = 0;
        for (index, result) in receive {
            waiting.insert(index, result);
            while let Some(result) = waiting.remove(&due) {
                match result {
                    Ok(result) => tell(due, result),
                    Err(error) => {
                        // Stops further items; the scope waits for those in progress.
                        next.store(items.len(), Ordering::Relaxed);
                        return Err(error);
                    }
                }
                due += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests;
