//! Energy of a GPU while it runs one subject.

use super::driver::{Event, GraphExec};
use super::nvml::EnergyCounter as _;
use super::session::GpuSession;
use tuner_core::judgement::Judgement;
use tuner_judge::stopwatch::{Draw, Subject};

/// Graphs queued ahead, so that the device has work while the host reads the counter.
pub(super) const QUEUED_GRAPHS: usize = 3;
/// A counter that does not step within this number of windows is unusable.
const MAX_WINDOWS: u64 = 20;

/// State of a window: launches before the counter's first step are not counted.
#[derive(Debug, Default)]
struct Window {
    last: Option<u64>,
    began: Option<(u64, u64)>,
}

impl Window {
    /// Records a counter value after `done` launches. Returns the window's result if this is a step
    /// after at least `least` launches in it.
    fn step(&mut self, counter: u64, done: u64, least: u64) -> Option<Draw> {
        if self
            .last
            .replace(counter)
            .is_none_or(|last| last == counter)
        {
            return None;
        }
        let (from, at) = *self.began.get_or_insert((counter, done));
        (done - at >= least.max(1)).then(|| Draw {
            millijoules: counter.saturating_sub(from),
            launches: done - at,
        })
    }
}

impl GpuSession {
    /// Runs the graph until the window ends; `None` if the counter does not step. If launches
    /// change a buffer in place, the energy includes the copies that restore it.
    pub(super) fn measure_draw(
        &mut self,
        events: &mut Vec<Event>,
        subject: Subject,
        exec: GraphExec,
        in_place: bool,
        launches: u32,
        least: u64,
    ) -> Result<Option<Draw>, Judgement> {
        for _ in 0..QUEUED_GRAPHS {
            events.push(self.gpu.call(|driver, _| driver.event_create())?);
        }
        let mut window = Window::default();
        let most = MAX_WINDOWS.saturating_mul(least.max(u64::from(launches)));
        let (mut turn, mut done) = (0_usize, 0_u64);
        while done < most {
            let event = events[turn % QUEUED_GRAPHS];
            if turn >= QUEUED_GRAPHS {
                self.gpu.call(|driver, _| driver.event_synchronize(event))?;
                done += u64::from(launches);
                let counter = self.monitor.energy_mj();
                if let Some(draw) = counter.and_then(|counter| window.step(counter, done, least)) {
                    return Ok(Some(draw));
                }
            }
            if in_place {
                self.restore(subject)?;
            }
            self.gpu.call(|driver, stream| {
                driver.graph_launch(exec, stream)?;
                driver.event_record(event, stream)
            })?;
            turn += 1;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
