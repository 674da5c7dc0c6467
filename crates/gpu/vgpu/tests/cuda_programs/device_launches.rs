//! Kernels that launch kernels: what a launch reports for its caller to run.

use crate::harness::{Program, h100};
use vgpu::{Arg, DeviceWork, End, launch};

#[test]
fn launches_are_reported_in_the_order_of_blocks_whatever_the_workers() {
    for threads in [1, 4] {
        let mut program = Program::new(include_str!("ptx/device_launches.ptx"));
        let x = program.unwritten(12);
        let errors = program.unwritten(4);
        let arguments = vec![Arg::Buffer(x), Arg::Buffer(errors)];
        let mut wanted = program.launch("parent", 4, 32, arguments);
        wanted.threads = threads;
        let report = launch(&program.module, &mut program.memory, h100(), &wanted).unwrap();
        assert_eq!(
            (&report.hazards[..], &report.end),
            (&[][..], &End::Completed)
        );
        // The grid of the last block is empty: cudaErrorInvalidConfiguration.
        assert_eq!(program.read(errors), [0, 0, 0, 9]);
        assert_eq!(report.operations.len(), 3);
        let address = program.memory.address(x).to_le_bytes();
        for (block, operation) in (0u8..).zip(&report.operations) {
            assert_eq!(operation.at_tail, block == 1);
            let DeviceWork::Launch(child) = &operation.work else {
                panic!("a launch is expected")
            };
            assert_eq!(child.entry, program.entry("child"));
            assert_eq!(child.grid, [u32::from(block) + 1, 2, 1]);
            assert_eq!(
                (child.block, child.shared_bytes),
                ([3, 1, 2], 64 * u32::from(block))
            );
            assert_eq!(child.parameters.len(), 18);
            assert_eq!(child.parameters[0], block);
            assert_eq!(child.parameters[8..16], address);
            assert_eq!(child.parameters[16..], (-2i16).to_le_bytes());
        }
    }
}

#[test]
fn launches_beyond_the_depth_of_cuda_fail() {
    let mut program = Program::new(include_str!("ptx/device_launches.ptx"));
    let (x, errors) = (program.unwritten(12), program.unwritten(2));
    let arguments = vec![Arg::Buffer(x), Arg::Buffer(errors)];
    let mut wanted = program.launch("parent", 2, 32, arguments);
    wanted.nesting = 24;
    let report = program.started(&wanted);
    assert_eq!(report.operations, []);
    assert_eq!(program.read(errors), [65, 65]);
}
