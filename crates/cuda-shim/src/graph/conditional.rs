//! Conditional nodes: bodies that run depending on a value that kernels set.
//!
//! The handle of a condition is the address of a word of device memory: `cudaGraphSetConditional` in a kernel
//! is a store there, and a launch reads the word after the nodes before.

use std::ffi::c_void;

use super::{Graph, copy, embedded, keep, with_graph};
use crate::client;
use crate::errors::{self, Code};
use crate::memory::{Copy, Direction, Fill, Place, address_of, pointer_to};
use crate::protocol::kind;

/// `cudaGraphCondAssignDefault`: each launch begins with the default value.
const ASSIGN_DEFAULT: u32 = 1;
/// Size of the word of a condition.
const WORD_BYTES: u64 = 4;

/// The variable of conditional nodes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition {
    /// Address of its word.
    handle: u64,
    /// Value at the beginning of each launch, if it is assigned then.
    initial: Option<u32>,
}

/// Rule by which a conditional node chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// The first body where the value is not 0, else the second if there is one.
    If,
    /// The body as long as the value is not 0.
    While,
    /// The body of that number, if there is one.
    Switch,
}

/// A conditional node.
#[derive(Debug, Clone)]
pub(crate) struct Conditional {
    handle: u64,
    choice: Choice,
    /// Handles of the bodies.
    bodies: Vec<u64>,
}

/// `cudaConditionalNodeParams`, with which the driver's begins.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ConditionalNode {
    handle: u64,
    choice: i32,
    size: u32,
    bodies: *mut *mut c_void,
}

impl ConditionalNode {
    /// The node with empty bodies, whose handles the program gets in `bodies`.
    pub(crate) fn create(&mut self) -> Result<Conditional, Code> {
        let (choice, most) = match self.choice {
            0 => (Choice::If, 2),
            1 => (Choice::While, 1),
            2 => (Choice::Switch, u32::MAX),
            _ => return Err(errors::INVALID_VALUE),
        };
        if self.size == 0 || self.size > most || self.handle == 0 {
            return Err(errors::INVALID_VALUE);
        }
        let bodies: Vec<u64> = (0..self.size).map(|_| keep(Graph::default())).collect();
        let handles: Vec<*mut c_void> = bodies.iter().map(|body| pointer_to(*body)).collect();
        // The array belongs to the node, and programs read it as long as they like.
        self.bodies = Box::leak(handles.into_boxed_slice()).as_mut_ptr();
        Ok(Conditional {
            handle: self.handle,
            choice,
            bodies,
        })
    }
}

impl Conditional {
    /// Runs the bodies that the value chooses.
    pub(super) fn run(&self, stream: u64) -> Result<(), Code> {
        let chosen = |value: u32| match self.choice {
            Choice::If => usize::from(value == 0),
            Choice::While if value == 0 => usize::MAX,
            Choice::While => 0,
            Choice::Switch => value as usize,
        };
        loop {
            let Some(body) = self.bodies.get(chosen(self.value(stream)?)) else {
                return Ok(());
            };
            with_graph(*body, |graph| graph.clone())?.run(stream)?;
            if self.choice != Choice::While {
                return Ok(());
            }
        }
    }

    fn value(&self, stream: u64) -> Result<u32, Code> {
        let mut value = 0u32;
        let to = address_of(&raw mut value);
        Copy::linear(to, self.handle, WORD_BYTES, Direction::DeviceToHost, stream).run()?;
        Ok(value)
    }

    /// A node with copies of the bodies.
    pub(super) fn duplicate(&self) -> Result<Conditional, Code> {
        let bodies: Result<_, _> = self.bodies.iter().map(|body| copy(*body)).collect();
        Ok(Conditional {
            bodies: bodies?,
            ..*self
        })
    }

    /// Handles of the bodies.
    pub(super) fn bodies(&self) -> &[u64] {
        &self.bodies
    }
}

/// Creates the variable of conditional nodes of a graph; returns its handle.
pub(crate) fn create_condition(graph: u64, initial: u32, flags: u32) -> Result<u64, Code> {
    if flags & !ASSIGN_DEFAULT != 0 {
        return Err(errors::INVALID_VALUE);
    }
    with_graph(graph, |_| ())?;
    let handle = crate::memory::allocate(WORD_BYTES, kind::DEVICE)?;
    let condition = Condition {
        handle,
        initial: (flags & ASSIGN_DEFAULT != 0).then_some(initial),
    };
    // A value that nothing sets is 0, for launches on every stream.
    condition.assign(0, 0)?;
    client::synchronize(0)?;
    with_graph(graph, |graph| graph.conditions.push(condition))?;
    Ok(handle)
}

impl Condition {
    fn assign(&self, value: u32, stream: u64) -> Result<(), Code> {
        Fill {
            place: Place::linear(self.handle, WORD_BYTES),
            value,
            element_bytes: 4,
            stream,
        }
        .run()
    }
}

/// Assigns the values that the conditions of a graph and of those that belong to its nodes have at the beginning of a
/// launch.
pub(super) fn assign_initial(graph: &Graph, stream: u64) -> Result<(), Code> {
    for condition in &graph.conditions {
        if let Some(value) = condition.initial {
            condition.assign(value, stream)?;
        }
    }
    embedded::nested(graph).into_iter().try_for_each(|nested| {
        let nested = with_graph(nested, |graph| graph.clone())?;
        assign_initial(&nested, stream)
    })
}
