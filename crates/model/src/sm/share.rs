//! A multiprocessor's share of what all of them use: the L2 cache's and the memory's bandwidth.

/// A queue that serves this multiprocessor at its share of the whole on average.
///
/// The multiprocessors are not in step: while some compute, others may have their bandwidth. How far
/// they are apart is what they have held each other up by so far, for whoever is served first goes
/// on first. So what is left over of the share is kept for as long as that, and no longer: all begin
/// at once.
#[derive(Debug)]
pub(super) struct Share {
    /// Bytes a clock on average, and at most.
    rate: f64,
    most: f64,
    /// When everything so far would be served at the share alone.
    even: f64,
    /// When everything so far is served.
    pub(super) end: f64,
    /// Cycles that the multiprocessors are apart.
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

    /// So many bytes are asked for; gives the cycle at which the last of them was served.
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
