//! Parameters of nodes whose layout is the driver's own.

use std::ffi::c_void;

use crate::abi::{initialized, store};
use crate::driver::copies::Copy3d;
use crate::driver::functions::handle_of;
use crate::driver::graphs::KernelNode2;
use crate::errors;
use crate::graph::{self, KernelNode, Node, replace};
use crate::memory::address_of;

initialized! {
    /// Returns the parameters of a kernel.
    fn cuGraphKernelNodeGetParams(node: *mut c_void, parameters: *mut KernelNode) {
        let (launch, arguments) = graph::describe_kernel(address_of(node))?;
        let function = handle_of(launch.function)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, KernelNode::describe(&launch, function, arguments)) }
    }

    /// Returns the parameters of a kernel.
    fn cuGraphKernelNodeGetParams_v2(node: *mut c_void, parameters: *mut KernelNode2) {
        let (launch, arguments) = graph::describe_kernel(address_of(node))?;
        let function = handle_of(launch.function)?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, KernelNode2::describe(&launch, function, arguments)) }
    }

    /// Returns the parameters of a copy of memory.
    fn cuGraphMemcpyNodeGetParams(node: *mut c_void, parameters: *mut Copy3d) {
        let copy = graph::describe_copy(address_of(node))?;
        // SAFETY: the program passes where the result goes.
        unsafe { store(parameters, Copy3d::describe(&copy)?) }
    }

    /// Returns the memory whose use a node ends.
    fn cuGraphMemFreeNodeGetParams(node: *mut c_void, address: *mut u64) {
        let found = graph::freed_by(address_of(node))?;
        // SAFETY: the program passes where the address goes.
        unsafe { store(address, found) }
    }

    /// Replaces a kernel of a graph.
    fn cuGraphKernelNodeSetParams(node: *mut c_void, parameters: *const KernelNode) {
        // SAFETY: the program passes the structure or null, and as many arguments as the kernel has.
        let launch = unsafe {
            parameters.as_ref().ok_or(errors::INVALID_VALUE)?.driver_node(std::ptr::null_mut())?
        };
        graph::set_node(address_of(node), launch)
    }

    /// Replaces a kernel of an executable graph.
    fn cuGraphExecKernelNodeSetParams(
        executable: *mut c_void,
        node: *mut c_void,
        parameters: *const KernelNode,
    ) {
        // SAFETY: the program passes the structure or null, and as many arguments as the kernel has.
        let launch = unsafe {
            parameters.as_ref().ok_or(errors::INVALID_VALUE)?.driver_node(std::ptr::null_mut())?
        };
        replace(address_of(executable), address_of(node), launch)
    }

    /// Replaces a copy of a graph.
    fn cuGraphMemcpyNodeSetParams(node: *mut c_void, parameters: *const Copy3d) {
        // SAFETY: the program passes the structure or null.
        let parameters = unsafe { parameters.as_ref() }.ok_or(errors::INVALID_VALUE)?;
        graph::set_node(address_of(node), Node::Copy(parameters.copy(0)?))
    }

}
