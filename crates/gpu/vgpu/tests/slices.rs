//! Slices of kernels: the blocks that write watched bytes, without computing the results.
#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is a panic")]

use std::sync::Arc;
use vgpu::{
    Arch, Arg, BlockSet, End, GlobalMemory, Launch, LaunchReport, Module, Roots, Watch, launch,
};

const PTX: &str = include_str!("ptx/basic.ptx");

fn saxpy(roots: Roots, watched: u64) -> (LaunchReport, u64) {
    let mut memory = GlobalMemory::new(1 << 20);
    let x = memory.alloc(4000, "x").unwrap();
    let y = memory.alloc(4000, "y").unwrap();
    for buffer in [x, y] {
        memory.write(buffer, 0, &[0; 4000]);
    }
    let module = Module::load_slice(PTX, roots).unwrap();
    let mut watch = Watch::new(&memory, roots == Roots::Accesses);
    match roots {
        Roots::Stores => watch.add(&memory, y, &(watched * 4..watched * 4 + 4)),
        Roots::Accesses => [x, y]
            .iter()
            .for_each(|buffer| watch.add(&memory, *buffer, &(0..4000))),
    }
    let args = vec![
        Arg::Buffer(x),
        Arg::Buffer(y),
        Arg::Bytes(2.0f32.to_le_bytes().to_vec()),
        Arg::Bytes(1000i32.to_le_bytes().to_vec()),
    ];
    let mut l = Launch::new("saxpy", [8, 1, 1], [128, 1, 1], args);
    l.checks.races = false;
    l.checks.uninitialized = false;
    l.watch = Some(Arc::new(watch));
    let report = launch(&module, &mut memory, Arch::by_name("h100").unwrap(), &l).unwrap();
    let reads = report.accesses.iter().flat_map(|block| &block.reads);
    let bytes = reads.map(|read| read.bytes.end - read.bytes.start).sum();
    (report, bytes)
}

#[test]
fn a_slice_tells_which_block_writes_an_element() {
    let (report, _) = saxpy(Roots::Stores, 700);
    assert_eq!(report.end, End::Completed);
    assert!(report.hazards.is_empty());
    let blocks: Vec<u32> = report.accesses.iter().map(|block| block.block).collect();
    assert_eq!(blocks, [5]);
    assert!(report.accesses[0].writes[0].first.bytes.contains(&2800));
}

#[test]
fn a_slice_of_all_accesses_reports_loads_too() {
    let (report, bytes) = saxpy(Roots::Accesses, 0);
    assert_eq!(report.accesses.len(), 8);
    // Both buffers are loaded once.
    assert_eq!(bytes, 8000);
}

#[test]
fn a_slice_executes_less_than_the_kernel() {
    let (whole, _) = saxpy(Roots::Accesses, 0);
    let (stores, _) = saxpy(Roots::Stores, 0);
    assert!(stores.counters.lane_instructions < whole.counters.lane_instructions);
}

#[test]
fn a_launch_of_no_blocks_completes_and_writes_nothing() {
    let mut memory = GlobalMemory::new(1 << 20);
    let buffers = ["x", "y"].map(|name| memory.alloc(4000, name).unwrap());
    let mut args: Vec<Arg> = buffers.into_iter().map(Arg::Buffer).collect();
    args.push(Arg::Bytes(2.0f32.to_le_bytes().to_vec()));
    args.push(Arg::Bytes(1000i32.to_le_bytes().to_vec()));
    let mut l = Launch::new("saxpy", [8, 1, 1], [128, 1, 1], args);
    l.blocks = BlockSet::List(Vec::new());
    let module = Module::load(PTX).unwrap();
    let report = launch(&module, &mut memory, Arch::by_name("h100").unwrap(), &l).unwrap();
    assert_eq!((report.end, report.counters.blocks), (End::Completed, 0));
    let unwritten: Vec<_> = memory.unwritten(buffers[1]).collect();
    assert_eq!(unwritten, std::iter::once(0..4000).collect::<Vec<_>>());
}

#[test]
fn rows_of_a_tile_are_one_strided_range() {
    // A block of 32 x 4 threads stores a row of 128 bytes of each of four lines of 1,024 bytes.
    const TILE: &str = include_str!("ptx/tile.ptx");
    let mut memory = GlobalMemory::new(1 << 20);
    let y = memory.alloc(16 * 1024, "y").unwrap();
    let module = Module::load_slice(TILE, Roots::Stores).unwrap();
    let mut watch = Watch::new(&memory, false);
    watch.add(&memory, y, &(0..16 * 1024));
    let mut l = Launch::new("tile", [8, 4, 1], [32, 4, 1], vec![Arg::Buffer(y)]);
    l.checks.races = false;
    l.watch = Some(Arc::new(watch));
    let report = launch(&module, &mut memory, Arch::by_name("h100").unwrap(), &l).unwrap();
    assert_eq!(report.accesses.len(), 32);
    let [rows] = report.accesses[9].writes.as_slice() else {
        panic!("one entry: {:?}", report.accesses[9].writes);
    };
    // Block (1, 1): column 32 of row 4.
    assert_eq!(rows.first.bytes, 4 * 1024 + 128..4 * 1024 + 256);
    assert_eq!((rows.stride, rows.count), (1024, 4));
    let last = rows.ranges().last().map(|range| range.bytes);
    assert_eq!(last, Some(7 * 1024 + 128..7 * 1024 + 256));
}
