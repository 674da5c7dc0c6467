//! Coverage of a single input, where the program is built with `-C instrument-coverage --cfg
//! fuzz_coverage`. Counters are those of the whole process, so one target runs at a time.

/// Parts of the program that inputs have reached.
pub(super) struct Coverage {
    /// Bits of [`class`] that were seen, for each counter of the program.
    seen: Vec<u8>,
}

impl Coverage {
    /// Starts without any; `None` in a program that counts nothing.
    pub(super) fn new() -> Option<Self> {
        let counters = counters()?.len();
        Some(Self {
            seen: vec![0; counters],
        })
    }

    /// Forgets what ran before, such as the preparation of an input.
    pub(super) fn begin() {
        if let Some(counters) = counters() {
            counters.fill(0);
        }
    }

    /// Adds what ran since [`Self::begin`], and reports whether it is new.
    pub(super) fn add(&mut self) -> bool {
        let mut new = false;
        for (seen, count) in self.seen.iter_mut().zip(counters().into_iter().flatten()) {
            let class = class(*count);
            new |= *seen & class != class;
            *seen |= class;
        }
        new
    }

    /// The number of counters that were reached.
    pub(super) fn reached(&self) -> usize {
        self.seen.iter().filter(|seen| **seen != 0).count()
    }
}

/// A bit for 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127 and more executions; none for 0. A loop that
/// runs once more is rarely news.
fn class(count: u64) -> u8 {
    match count {
        0 => 0,
        1..=3 => 1 << (count - 1),
        4..=7 => 1 << 3,
        8..=15 => 1 << 4,
        16..=31 => 1 << 5,
        32..=127 => 1 << 6,
        _ => 1 << 7,
    }
}

/// The counters of LLVM's instrumentation.
#[cfg(fuzz_coverage)]
#[expect(
    unsafe_code,
    reason = "the counters of a profile have no other interface"
)]
fn counters() -> Option<&'static mut [u64]> {
    unsafe extern "C" {
        fn __llvm_profile_begin_counters() -> *mut u64;
        fn __llvm_profile_end_counters() -> *mut u64;
    }
    // SAFETY: both functions return the ends of one static array of aligned counters. Other threads
    // increment them meanwhile; a lost increment makes an input look less new.
    unsafe {
        let (begin, end) = (
            __llvm_profile_begin_counters(),
            __llvm_profile_end_counters(),
        );
        let count = usize::try_from(end.offset_from(begin)).ok()?;
        Some(std::slice::from_raw_parts_mut(begin, count))
    }
}

#[cfg(not(fuzz_coverage))]
fn counters() -> Option<&'static mut [u64]> {
    None
}

#[test]
fn more_executions_are_news_up_to_a_point() {
    let classes: Vec<u8> = [0, 1, 2, 3, 4, 7, 8, 31, 127, 128, u64::MAX]
        .map(class)
        .into();
    assert_eq!(classes, [0, 1, 2, 4, 8, 8, 16, 32, 64, 128, 128]);
}
