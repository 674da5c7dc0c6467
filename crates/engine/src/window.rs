//! How many candidates are in flight, and when the turn of one may come.

/// Candidates compiled per result at most: more would be thrown away, and the machine has other
/// things to do.
const PER_RESULT_MOST: usize = 4;

/// Candidates being compiled, and compiled ones waiting for their turn.
///
/// A compile takes time, during which other candidates are judged: one that is asked for after `n`
/// results cannot have its turn before `n +` [`Window::latency`] of them. After that it waits until
/// the search chooses it, with all that is known by then, or gives it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Candidates being compiled at once.
    pub(crate) compiling: usize,
    /// Candidates being compiled or waiting.
    pub(crate) most: usize,
    /// Candidates that may be asked for after each result.
    pub(crate) per_result: usize,
}

impl Window {
    /// A window of that many candidates, at least one. One is compiled for every result, so none
    /// is given up.
    #[must_use]
    pub(crate) fn one_per_result(size: usize) -> Self {
        let size = size.max(1);
        Self {
            compiling: size,
            most: size,
            per_result: 1,
        }
    }

    /// A pool that compiles that many candidates at once, at least one, beside a device that has
    /// its own processor: more are compiled than judged, and the search chooses. One at a time
    /// tells every result before the next question.
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

    /// Results that come while a candidate is compiled: a quarter of those compiled at once.
    /// Compiling takes about as long as judging; four is on the safe side for sixteen.
    #[must_use]
    pub(crate) fn latency(self) -> u64 {
        self.compiling as u64 / 4
    }

    /// The number of results after which the turn of a candidate may come that is asked for now,
    /// after `told` results and with `before` others in flight. The first ones come in order, as
    /// the compiler is done with them.
    #[must_use]
    pub(crate) fn earliest_turn(self, told: u64, before: usize) -> u64 {
        if told == 0 {
            before as u64
        } else {
            told + self.latency()
        }
    }
}
