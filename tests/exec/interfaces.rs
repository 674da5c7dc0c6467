//! Programs of nvcc that use both interfaces, or call them as few programs do.

use super::nvcc::{built, built_for, built_with};

/// Captures, graphs, waits for values, printed text, page-locked memory and faults are those of the process,
/// whichever interface a call belongs to.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn both_interfaces_have_one_state() {
    let options = ["--error-exitcode", "0"];
    let (code, stdout, stderr) = built_for("mixed.cu", &options, &["-lcuda"], &[]);
    let expected = "kernel 7\npassed\n";
    assert_eq!((code, stdout.as_str()), (Some(0), expected), "{stderr}");
    assert!(!stderr.contains("unordered"), "{stderr}");
}

/// Destroyed streams that wait, attributes of launches, frees of the other kind, sizes of pools, memory of graphs,
/// flags, calls of functions of the host, and calls after a fault.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn unusual_calls_return_what_is_documented() {
    let options = ["--error-exitcode", "0"];
    let (code, stdout, stderr) = built_for("unusual_calls.cu", &options, &["-lcuda"], &[]);
    let expected = (Some(0), "passed\n");
    assert_eq!((code, stdout.as_str()), expected, "{stderr}");
}

/// Memory of a pool begins and ends in the order of a stream, and no other stream may use it without an order.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn uses_of_memory_of_a_pool_are_ordered_with_its_beginning_and_end() {
    for (case, expected) in [
        ("use", &["allocation", "free"][..]),
        ("neither", &["free"]),
        ("host", &[]),
        ("event", &[]),
        ("same", &[]),
    ] {
        let (code, _, stderr) = built("stream_pools.cu", &[case]);
        let hazards = if expected.is_empty() { 0 } else { 4 };
        assert_eq!(code, Some(hazards), "{case}: {stderr}");
        for name in expected {
            assert!(
                stderr.contains(&format!("{name} (stream")),
                "{case}: {stderr}"
            );
        }
    }
}

/// Events that occur when the blocks have begun order nothing after the kernel.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn events_of_launches_order_what_follows_the_end_of_the_kernel_alone() {
    for (case, hazards) in [("completion", 4), ("start", 4), ("end", 0)] {
        let (code, stdout, stderr) = built("launch_events.cu", &[case]);
        assert_eq!(
            (code, stdout.as_str()),
            (Some(hazards), "0 0\n"),
            "{case}: {stderr}"
        );
        assert_eq!(
            stderr.contains("unordered"),
            hazards > 0,
            "{case}: {stderr}"
        );
    }
}

/// The default of `cudaLimitStackSize` holds few frames.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn recursion_ends_at_the_limit_of_the_stack() {
    for (arguments, expected) in [
        (&["5"][..], "0, 15\n"),
        (&["100"], "714, 0\n"),
        (&["100", "16384"], "limit 0\n0, 5050\n"),
        (&["5", "1000000000"], "limit 1\n0, 15\n"),
    ] {
        let (_, stdout, stderr) = built("stack.cu", arguments);
        assert_eq!(stdout, expected, "{arguments:?}: {stderr}");
        assert_eq!(
            stderr.contains("1024 bytes"),
            stdout.starts_with('7'),
            "{stderr}"
        );
    }
}

/// Attributes that one interface sets are those that the other returns.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn attributes_of_kernels_are_returned() {
    let (code, stdout, stderr) = built_with("function_attributes.cu", &["-lcuda"], &[]);
    assert_eq!((code, stdout.as_str()), (Some(0), "passed\n"), "{stderr}");
}

/// Programs that are compiled so mean the stream of the thread by the default stream, also in calls that wait.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn threads_have_streams() {
    for (case, code, expected) in [
        ("created", 4, "0 2\n"),
        ("legacy", 0, "0 3\n"),
        ("thread", 4, "0 2\n"),
        ("awaited", 0, "0 2\n"),
        ("handle", 0, "0 2\n"),
        ("reset", 0, "0 1\n"),
        ("capture", 0, "0 0 900 901 0 1\n"),
    ] {
        let options = ["--default-stream", "per-thread"];
        let (ended, stdout, stderr) = built_with("own_streams.cu", &options, &[case]);
        let expected = (Some(code), expected);
        assert_eq!((ended, stdout.as_str()), expected, "{case}: {stderr}");
        assert_eq!(stderr.contains("unordered"), code == 4, "{case}: {stderr}");
    }
}

/// "Each launch is ordered behind both any previous work in stream and any previous launches of graphExec."
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn launches_of_one_executable_graph_are_ordered() {
    for (case, code) in [("same", 0), ("copy", 4)] {
        let (ended, stdout, stderr) = built("graph_launches.cu", &[case]);
        let expected = (Some(code), "0 2\n");
        assert_eq!((ended, stdout.as_str()), expected, "{case}: {stderr}");
        assert_eq!(stderr.contains("unordered"), code == 4, "{case}: {stderr}");
    }
}

/// One executable graph, no copies, one free of each allocation, and no launch while memory is in use.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn graphs_with_memory_are_restricted() {
    let (code, stdout, stderr) = built_with("graph_memory.cu", &["-lcuda"], &[]);
    assert_eq!((code, stdout.as_str()), (Some(0), "passed\n"), "{stderr}");
}

/// A fault of a kernel is the result of all later calls that use the context, until a reset, and of no others.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn calls_after_a_fault_return_it() {
    let options = ["--error-exitcode", "0"];
    let (code, stdout, stderr) = built_for("after_fault.cu", &options, &["-lcuda"], &[]);
    assert_eq!((code, stdout.as_str()), (Some(0), "passed\n"), "{stderr}");
}

/// The stream of a thread ends with it, and another thread does not take its captures over.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn threads_that_end_leave_no_stream() {
    let options = ["--default-stream", "per-thread", "-lcuda"];
    let (code, stdout, stderr) = built_with("ended_threads.cu", &options, &[]);
    assert_eq!((code, stdout.as_str()), (Some(0), "passed\n"), "{stderr}");
}

/// Three branches of a graph and a node that waits for all of them.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn a_node_waits_for_each_of_three_lanes() {
    for (without, code) in [("3", 0), ("0", 4), ("1", 4), ("2", 4)] {
        let (ended, stdout, stderr) = built("graph_lanes.cu", &[without]);
        let expected = (Some(code), "6\n");
        assert_eq!((ended, stdout.as_str()), expected, "{without}: {stderr}");
        assert_eq!(
            stderr.contains("unordered"),
            code == 4,
            "{without}: {stderr}"
        );
    }
}

/// A thread that ends, with the program or alone, does not wait for the launch of another one.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn a_watchdog_ends_a_program_that_hangs() {
    let (code, stdout, stderr) = built("watchdog.cu", &[]);
    assert_eq!((code, stdout.as_str()), (Some(7), "too long\n"), "{stderr}");
}

/// A graph of a child node ends with the node and not before.
#[test]
#[cfg_attr(not(nvcc), ignore = "nvcc is not installed (scripts/get-nvcc)")]
fn graphs_of_nodes_end_with_them() {
    let (code, stdout, stderr) = built("graph_children.cu", &[]);
    assert_eq!((code, stdout.as_str()), (Some(0), "passed\n"), "{stderr}");
}
