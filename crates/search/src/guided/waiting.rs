//! Proposals that are being compiled, or compiled and not yet evaluated.

use super::Wish;
use super::archive::Archive;
use surrogate::{Place, Point, Process};
use tuner_space::Config;

/// One of them.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) id: u64,
    pub(super) config: Config,
    pub(super) lies: Place,
    pub(super) point: Point,
    /// Proposed by the model, which may change its mind; the others keep their order.
    pub(super) weighed: bool,
    /// Comes of what is known from elsewhere.
    pub(super) lent: bool,
    /// The model that `point` belongs to.
    model: u64,
}

/// All of them, in the order proposed.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) list: Vec<Waiter>,
}

impl Waiting {
    pub(super) fn push(
        &mut self,
        id: u64,
        wish: Wish,
        lies: Place,
        (model, archive, process): (u64, &Archive, &Process),
    ) {
        let point = process.point(&archive.seen(&lies));
        self.list.push(Waiter {
            id,
            config: wish.config,
            lies,
            point,
            weighed: wish.weighed,
            lent: wish.lent,
            model,
        });
    }

    pub(super) fn take(&mut self, id: u64) -> Option<Waiter> {
        let place = self.list.iter().position(|waiter| waiter.id == id)?;
        Some(self.list.remove(place))
    }

    /// Brings all points up to date with this model.
    pub(super) fn catch_up(&mut self, model: u64, archive: &Archive, process: &Process) {
        for waiter in &mut self.list {
            if waiter.model == model {
                process.catch_up(&mut waiter.point);
            } else {
                waiter.point = process.point(&archive.seen(&waiter.lies));
                waiter.model = model;
            }
        }
    }

    /// What is left of a candidate's variance once those waiting are measured, as if each told of
    /// it independently of the others.
    pub(super) fn variance_after(&self, process: &Process, point: &Point) -> f64 {
        self.list.iter().fold(point.variance, |left, waiter| {
            let common = process.covariance(point, &waiter.point);
            let both = point.variance.max(1e-9) * waiter.point.variance.max(1e-9);
            left * (1.0 - (common * common / both).min(1.0))
        })
    }
}
