//! Pages of memory that the host and the device share.

use std::ops::Range;

/// Size of a page of shared memory, bytes.
pub(crate) const PAGE: u64 = 4096;

/// Returns the pages in which two texts of equal length differ; adjacent pages are one range.
pub(crate) fn differences(before: &[u8], after: &[u8]) -> Vec<Range<usize>> {
    let page = PAGE as usize;
    let mut out: Vec<Range<usize>> = Vec::new();
    for (index, (old, new)) in before.chunks(page).zip(after.chunks(page)).enumerate() {
        if old == new {
            continue;
        }
        let range = index * page..index * page + new.len();
        match out.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => out.push(range),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_pages_are_exchanged() {
        let before = vec![0; 3 * PAGE as usize];
        let mut after = before.clone();
        *after.last_mut().expect("bytes") = 1;
        let changed = differences(&before, &after);
        let page = PAGE as usize;
        assert!(matches!(changed.as_slice(), [range] if *range == (2 * page..3 * page)));
    }
}
