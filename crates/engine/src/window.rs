//! Number of candidates in flight, and the earliest turn of each.

/// Maximum compiled candidates for each result: more would be discarded and waste the machine.
const PER_RESULT_MOST: usize = 4;

/// Candidates being compiled, and compiled ones waiting for their turn.
///
/// Other candidates are judged during a compile: a candidate requested after `n` results cannot have its
/// turn before `n +` [`Window::latency`] of them. Then it waits until the search chooses it, with all
/// results by then, or drops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Concurrent compiles.
    pub(crate) compiling: usize,
    /// Maximum candidates being compiled or waiting.
    pub(crate) most: usize,
    /// Candidates that may be requested after each result.
    pub(crate) per_result: usize,
}

impl Window {
    /// Returns a window of `size` candidates, at least one. One is compiled for every result, so
    /// none is dropped.
    #[must_use]
    pub(crate) fn one_per_result(size: usize) -> Self {
        let size = size.max(1);
        Self {
            compiling: size,
            most: size,
            per_result: 1,
        }
    }

    /// Returns a pool with `size` concurrent compiles, at least one, next to a device with a
    /// separate processor: more are compiled than judged, and the search chooses. With one, every
    /// result is reported before the next request.
    #[must_use]
    pub(crate) fn pool(size: usize) -> Self {
        match size {
            0 | 1 => Self::one_per_result(1),
            size => Self {
                compiling: size,
                most: 2 * size,
                per_result: size.min(PER_RESULT_MOST),
            },
        }
    }

    /// Returns the results that arrive during a compile: a quarter of the concurrent compiles.
    /// Compiling takes about as long as judging; four is a safe value for sixteen.
    #[must_use]
    pub(crate) fn latency(self) -> u64 {
        self.compiling as u64 / 4
    }

    /// Returns the number of results from which a candidate's turn may come if it is requested now,
    /// after `told` results and with `before` others in flight. The first ones come in order, as
    /// compiles finish.
    #[must_use]
    pub(crate) fn earliest_turn(self, told: u64, before: usize) -> u64 {
        if told == 0 {
            before as u64
        } else {
            told + self.latency()
        }
    }
}
