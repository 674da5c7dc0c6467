//! Bandwidth share of a multiprocessor in the L2 cache and in memory.

/// A queue that serves this multiprocessor at its mean share of the bandwidth.
///
/// Multiprocessors are not synchronous: while some compute, others can use their bandwidth. The
/// spread between them grows with the delays they have caused each other, as the one served first
/// also continues first. Unused share is therefore kept for that long and not longer, because all
/// start at the same time.
#[derive(Debug)]
pub(super) struct Share {
    /// Mean rate, bytes per clock; the next field is the largest rate.
    rate: f64,
    most: f64,
    /// Completion of all requests at the mean share alone.
    even: f64,
    /// Completion of all requests.
    pub(super) end: f64,
    /// Spread between the multiprocessors, cycles.
    apart: f64,
}

impl Share {
    pub(super) fn new(rate: f64, most: f64) -> Share {
        Share {
            rate,
            most,
            even: 0.0,
            end: 0.0,
            apart: 0.0,
        }
    }

    /// Requests `bytes` and returns the cycle at which the last one is served.
    pub(super) fn take(&mut self, now: u64, bytes: f64) -> u64 {
        let now = now as f64;
        self.even = self.even.max(now - self.apart) + bytes / self.rate;
        self.apart = self.apart.max(self.even - now);
        let soonest = self.end.max(now) + bytes / self.most.max(self.rate);
        self.end = soonest.max(self.even);
        self.end as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn bursts_that_leave_the_share_unused_between_them_are_served_faster_than_it() {
        let mut share = Share::new(4.0, 64.0);
        let took: Vec<u64> = (0..4)
            .map(|turn| share.take(turn * 10_000, 4000.0) - turn * 10_000)
            .collect();
        assert_eq!(took[0], 1000);
        assert!(took[1..].iter().all(|cycles| *cycles == 62), "{took:?}");
    }

    #[test]
    fn on_average_nothing_is_faster_than_the_share() {
        let mut share = Share::new(4.0, 64.0);
        let end = (0..1000).map(|turn| share.take(turn * 10, 400.0)).last();
        assert_eq!(end, Some(100_000));
    }
}
