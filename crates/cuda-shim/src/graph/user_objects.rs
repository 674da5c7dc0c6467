//! Objects of the program that graphs keep alive.

use std::sync::atomic::Ordering;

use super::{HANDLE_STEP, HostCall, with_graph};
use crate::errors::{self, Code};
use crate::protocol::NO_STREAM;
use crate::state::{lock, state};

/// `cudaGraphUserObjectMove`: the graph takes over references of the caller.
const MOVE: u32 = 1;

/// An object with the function that destroys it.
#[derive(Debug)]
pub(crate) struct UserObject {
    destroy: HostCall,
    references: u64,
}

/// Creates an object; returns its handle.
pub(crate) fn create_object(destroy: HostCall, references: u32) -> Result<u64, Code> {
    if references == 0 {
        return Err(errors::INVALID_VALUE);
    }
    let handle = state()
        .next_user_object
        .fetch_add(HANDLE_STEP, Ordering::Relaxed);
    let object = UserObject {
        destroy,
        references: references.into(),
    };
    let mut objects = lock(&state().user_objects);
    objects.insert(handle, object);
    Ok(handle)
}

/// Adds references of the program.
pub(crate) fn retain_object(handle: u64, count: u32) -> Result<(), Code> {
    let mut objects = lock(&state().user_objects);
    let object = objects.get_mut(&handle).filter(|_| count > 0);
    object.ok_or(errors::INVALID_VALUE)?.references += u64::from(count);
    Ok(())
}

/// Releases references; the last one destroys the object.
pub(crate) fn release_object(handle: u64, count: u32) -> Result<(), Code> {
    let mut objects = lock(&state().user_objects);
    let object = objects.get_mut(&handle).ok_or(errors::INVALID_VALUE)?;
    let left = object.references.checked_sub(count.into());
    object.references = left.filter(|_| count > 0).ok_or(errors::INVALID_VALUE)?;
    if object.references > 0 {
        return Ok(());
    }
    let ended = objects.remove(&handle);
    // The function may release other objects.
    drop(objects);
    if let Some(UserObject { destroy, .. }) = ended {
        destroy.run(NO_STREAM);
    }
    Ok(())
}

/// Adds references of a graph, or hands those of the caller to it.
pub(crate) fn retain_for_graph(
    graph: u64,
    handle: u64,
    count: u32,
    flags: u32,
) -> Result<(), Code> {
    with_graph(graph, |_| ())?;
    match flags {
        0 => retain_object(handle, count)?,
        MOVE => {}
        _ => return Err(errors::INVALID_VALUE),
    }
    let references = std::iter::repeat_n(handle, count as usize);
    with_graph(graph, |graph| graph.objects.extend(references))
}

/// Releases references of a graph.
pub(crate) fn release_from_graph(graph: u64, handle: u64, count: u32) -> Result<(), Code> {
    let released = with_graph(graph, |graph| {
        let held = graph.objects.iter().filter(|object| **object == handle);
        let enough = held.count() >= count as usize;
        for _ in 0..if enough { count } else { 0 } {
            let place = graph.objects.iter().position(|object| *object == handle);
            graph.objects.remove(place?);
        }
        enough.then_some(())
    })?;
    released.ok_or(errors::INVALID_VALUE)?;
    release_object(handle, count)
}

/// Adds the references of a copy of a graph.
pub(super) fn retain_all(objects: &[u64]) {
    for object in objects {
        // The graph that was copied holds each of them.
        let _ = retain_object(*object, 1);
    }
}

/// Releases the references of a graph that ends.
pub(super) fn release_all(objects: &[u64]) {
    for object in objects {
        let _ = release_object(*object, 1);
    }
}
