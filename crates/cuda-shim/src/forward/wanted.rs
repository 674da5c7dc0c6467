//! Decisions of the tuner about launches.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::call::Call;
use crate::connection::call;
use crate::protocol::{FunctionInfo, Message, Op};

/// Facts from the tuner about a launch that it wants.
#[derive(Debug)]
pub(super) struct Wanted {
    /// The kernel in the tuner.
    pub(super) info: FunctionInfo,
    /// Bytes of contents that there is room for.
    pub(super) room: u64,
    /// Names of the variables of its module.
    pub(super) variables: Vec<String>,
}

type Shape = (usize, [u32; 7]);

/// Launches that the tuner was asked about, by kernel and extents: most launches of a program are repetitions.
static ASKED: Mutex<BTreeSet<Shape>> = Mutex::new(BTreeSet::new());

fn shape(launch: &Call) -> Shape {
    let [grid, block] = launch.extents;
    let extents = [
        grid.x,
        grid.y,
        grid.z,
        block.x,
        block.y,
        block.z,
        launch.shared_bytes,
    ];
    (launch.function.addr(), extents)
}

/// Reports whether the tuner was asked about such a launch: it wants each once.
pub(super) fn was_asked(launch: &Call) -> bool {
    let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    asked.contains(&shape(launch))
}

/// Asks the tuner whether it wants a launch, which it wants once.
pub(super) fn ask(launch: &Call, name: &str) -> Option<Wanted> {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    asked.insert(shape(launch));
    drop(asked);
    let mut head = Message::new();
    head.put_str(name);
    launch.put_extents(&mut head);
    let reply = call(Op::WantLaunch, &head).ok()?;
    let mut fields = reply.fields();
    if fields.u32().ok()? == 0 {
        return None;
    }
    let room = fields.u64().ok()?;
    let info = FunctionInfo::take(&mut fields).ok()?;
    let count = fields.u32().ok()?;
    let variables = (0..count).map(|_| Some(fields.str().ok()?.to_owned()));
    Some(Wanted {
        info,
        room,
        variables: variables.collect::<Option<_>>()?,
    })
}
