//! Parameters of nodes, as both interfaces return them.

use std::ffi::{c_uint, c_void};

use super::{FillNode, HostNode, Node, with_node};
use crate::client::AttributeValue;
use crate::errors::{self, Code};
use crate::kernels::{Dim3, Launch, signature};
use crate::memory::{Copy, Fill, address_of, pointer_to};
use crate::protocol::COOPERATIVE;
use crate::state::{lock, state};

/// Arguments of a kernel in memory that the node owns.
#[derive(Debug)]
pub(crate) struct NodeArguments {
    block: Box<[u128]>,
    pointers: Box<[u64]>,
}

/// `CUDA_KERNEL_NODE_PARAMS` of version 1 and `cudaKernelNodeParams`.
#[repr(C)]
#[derive(Debug)]
pub struct KernelNode {
    pub(crate) function: *mut c_void,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) shared_bytes: c_uint,
    pub(crate) arguments: *mut *mut c_void,
    /// The packed arguments, which only the driver interface reads.
    pub(crate) extra: *mut *mut c_void,
}

impl KernelNode {
    /// The parameters of a launch.
    pub(crate) fn describe(
        launch: &Launch,
        function: *mut c_void,
        arguments: *mut *mut c_void,
    ) -> KernelNode {
        KernelNode {
            function,
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes as c_uint,
            arguments,
            extra: std::ptr::null_mut(),
        }
    }
}

/// Returns the copy of a node.
pub(crate) fn describe_copy(node: u64) -> Result<Copy, Code> {
    with_node(node, |node| match node {
        Node::Copy(copy) => Ok(*copy),
        _ => Err(errors::INVALID_VALUE),
    })?
}

/// Returns the launch of a node, and its arguments at addresses that stay.
pub(crate) fn describe_kernel(node: u64) -> Result<(Launch, *mut *mut c_void), Code> {
    let launch = with_node(node, |node| match node {
        Node::Launch(launch) => Ok(launch.clone()),
        _ => Err(errors::INVALID_VALUE),
    })??;
    let words = launch.parameters.chunks(size_of::<u128>()).map(|bytes| {
        let mut word = [0; size_of::<u128>()];
        word.iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        u128::from_ne_bytes(word)
    });
    let mut arguments = NodeArguments {
        block: words.collect(),
        pointers: Box::default(),
    };
    let base = address_of(arguments.block.as_ptr());
    let spans = signature(launch.function).parameters.into_iter();
    arguments.pointers = spans.map(|span| base + u64::from(span.offset)).collect();
    let list = arguments.pointers.as_mut_ptr().cast::<*mut c_void>();
    let mut kept = lock(&state().node_arguments);
    kept.insert(node, arguments);
    Ok((launch, list))
}

impl FillNode {
    /// The parameters of an operation.
    pub(crate) fn describe(fill: &Fill) -> FillNode {
        let shape = fill.place.shape;
        FillNode {
            destination: pointer_to(fill.place.address),
            pitch: shape.pitch as usize,
            value: fill.value,
            element_bytes: fill.element_bytes,
            width: (shape.width / u64::from(fill.element_bytes.max(1))) as usize,
            height: shape.height as usize,
        }
    }

    /// The parameters of a node.
    pub(crate) fn of_node(node: u64) -> Result<FillNode, Code> {
        with_node(node, |node| match node {
            Node::Fill(fill) => Ok(FillNode::describe(fill)),
            _ => Err(errors::INVALID_VALUE),
        })?
    }
}

impl HostNode {
    /// The parameters of a node.
    pub(crate) fn of_node(node: u64) -> Result<HostNode, Code> {
        with_node(node, |node| match node {
            Node::Host(call) => Ok(HostNode {
                function: Some(call.function),
                argument: pointer_to(call.argument),
            }),
            _ => Err(errors::INVALID_VALUE),
        })?
    }
}

/// Returns the event of a node that records one, or of one that `waits`.
pub(crate) fn event_of(node: u64, waits: bool) -> Result<u64, Code> {
    with_node(node, |node| match (node, waits) {
        (Node::Wait(event), true) | (Node::Record(event), false) => Ok(*event),
        _ => Err(errors::INVALID_VALUE),
    })?
}

/// Returns the handle of the graph that belongs to a node.
pub(crate) fn child_graph(node: u64) -> Result<u64, Code> {
    with_node(node, |node| node.child())?.ok_or(errors::INVALID_VALUE)
}

/// Attributes of a kernel by their numbers in `cudaLaunchAttributeID`.
const ATTRIBUTE_COOPERATIVE: u32 = 2;
const ATTRIBUTE_CLUSTER: u32 = 4;

/// An attribute of a node that is a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeAttribute {
    pub(crate) node: u64,
    pub(crate) number: u32,
}

fn with_launch<T>(node: u64, body: impl FnOnce(&mut Launch) -> T) -> Result<T, Code> {
    with_node(node, |node| match node {
        Node::Launch(launch) => Ok(body(launch)),
        _ => Err(errors::INVALID_VALUE),
    })?
}

fn word(value: &AttributeValue, index: usize) -> u32 {
    let bytes = value.chunks_exact(4).nth(index);
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    u32::from_ne_bytes(bytes.unwrap_or_default())
}

fn from_words(words: &[u32]) -> AttributeValue {
    let mut value = [0; 64];
    let places = value.chunks_exact_mut(4).zip(words);
    places.for_each(|(to, word)| to.copy_from_slice(&word.to_ne_bytes()));
    value
}

/// Sets an attribute of a kernel in a graph.
pub(crate) fn set_attribute(attribute: NodeAttribute, value: AttributeValue) -> Result<(), Code> {
    with_launch(attribute.node, |launch| match attribute.number {
        ATTRIBUTE_COOPERATIVE if word(&value, 0) != 0 => launch.flags |= COOPERATIVE,
        ATTRIBUTE_COOPERATIVE => launch.flags &= !COOPERATIVE,
        ATTRIBUTE_CLUSTER => {
            let [x, y, z] = [0, 1, 2].map(|index| word(&value, index).max(1));
            launch.cluster = Dim3 { x, y, z };
        }
        _ => {}
    })?;
    let mut attributes = lock(&state().node_attributes);
    attributes.insert(attribute, value);
    Ok(())
}

/// Returns an attribute of a kernel in a graph.
pub(crate) fn get_attribute(attribute: NodeAttribute) -> Result<AttributeValue, Code> {
    let launch = with_launch(attribute.node, |launch| launch.clone())?;
    let cluster = launch.cluster;
    Ok(match attribute.number {
        ATTRIBUTE_COOPERATIVE => from_words(&[u32::from(launch.flags & COOPERATIVE != 0)]),
        ATTRIBUTE_CLUSTER => from_words(&[cluster.x, cluster.y, cluster.z]),
        _ => {
            let attributes = lock(&state().node_attributes);
            attributes.get(&attribute).copied().unwrap_or([0; 64])
        }
    })
}

/// Copies the attributes of a kernel in a graph to another one.
pub(crate) fn copy_attributes(to: u64, from: u64) -> Result<(), Code> {
    let source = with_launch(from, |launch| launch.clone())?;
    with_launch(to, |launch| {
        launch.cluster = source.cluster;
        launch.flags = source.flags;
    })?;
    let mut attributes = lock(&state().node_attributes);
    let all = attributes.iter();
    let own = all.filter(|(key, _)| key.node == from);
    let copies: Vec<_> = own
        .map(|(key, value)| (NodeAttribute { node: to, ..*key }, *value))
        .collect();
    attributes.extend(copies);
    Ok(())
}
