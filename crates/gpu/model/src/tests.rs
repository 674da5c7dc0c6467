//! Comparison of replayed and executed counts for loops that the assembler unrolled and merged.

use super::{Estimate, Sampled, Shape, Traces, estimate, trace};
use sass::Unit;
use sass_machine::Machine;
use vgpu::counters::Class;
use vgpu::exec::trace::Target;
use vgpu::{Arch, Arg, GlobalMemory, Launch, Module};

const PTX: &str = include_str!("../tests/model/loops.ptx");
const CUBIN: &[u8] = include_bytes!("../tests/model/loops.cubin");
const ATOMICS: (&str, &[u8]) = (
    include_str!("../tests/model/atomics.ptx"),
    include_bytes!("../tests/model/atomics.cubin"),
);

/// Size of an argument's buffer in bytes, or a number.
enum Given {
    Bytes(u64),
    Int(i32),
    Single(f32),
}
use Given::{Bytes, Int, Single};

/// Executes and replays an entry of `loops.cu` on a device with at most one block per
/// multiprocessor.
fn replayed(entry: &str, grid: [u32; 3], block: [u32; 3], given: &[Given]) -> (Traces, Estimate) {
    replayed_of((PTX, CUBIN), entry, grid, block, given)
}

/// Executes and replays an entry of another file.
fn replayed_of(
    (ptx, cubin): (&str, &[u8]),
    entry: &str,
    grid: [u32; 3],
    block: [u32; 3],
    given: &[Given],
) -> (Traces, Estimate) {
    let arch = Arch::by_name("a100").unwrap();
    let (module, machine) = (
        Module::load(ptx).unwrap(),
        Machine::load(cubin, entry).unwrap(),
    );
    let mut memory = GlobalMemory::new(1 << 30);
    let args = given.iter().map(|given| match given {
        Bytes(bytes) => {
            let buffer = memory.alloc(*bytes, "buffer").unwrap();
            let half = |i: u64| (0x3c00 + i as u32 % 97).to_le_bytes();
            let content: Vec<u8> = (0..bytes / 4).flat_map(half).collect();
            memory.write(buffer, 0, &content);
            Arg::Buffer(buffer)
        }
        Int(n) => Arg::Bytes(n.to_le_bytes().to_vec()),
        Single(x) => Arg::Bytes(x.to_le_bytes().to_vec()),
    });
    let args = args.collect();
    let launch = Launch::new(entry, grid, block, args);
    let shape = Shape {
        grid,
        threads: block.iter().product(),
        registers: 64,
        shared_bytes: 4096,
    };
    let found = trace(&machine, &module, &mut memory, arch, &launch, 108).unwrap();
    let Sampled::Traced(traces) = found else {
        panic!("{found:?}")
    };
    let estimate = estimate(arch, &machine, (*traces).clone(), &shape).unwrap();
    (*traces, estimate)
}

/// Checks that the replay passes each instruction as often as it was executed, and moves the bytes
/// that the PTX moves.
fn equal(traces: &Traces, estimate: &Estimate) {
    assert_eq!(estimate.doubts, Vec::<String>::new());
    assert_eq!(estimate.tally.by_unit, traces.by_unit);
    let executed: u64 = traces.by_opcode.values().sum();
    assert_eq!(estimate.tally.issued, executed);
    let global = |write: bool| {
        let warps = traces.main.warps.iter();
        let all = warps.flat_map(|warp| warp.accesses.iter().map(move |access| (warp, access)));
        all.filter(move |(_, a)| matches!(a.target, Target::Global { .. }) && a.write == write)
    };
    let bytes = |write: bool| {
        let each = global(write).map(|(_, a)| u64::from(a.bytes) * u64::from(a.lanes));
        each.sum::<u64>()
    };
    let sectors = |write: bool| {
        let each = global(write).map(|(warp, a)| warp.sectors_of(a).len() as u64);
        each.sum::<u64>()
    };
    let counted = &traces.counters;
    // Counters are scaled to the mean of all blocks.
    let scaled = |bytes: u64| (bytes as f64 * traces.imbalance.mean).round() as u64;
    assert_eq!(scaled(bytes(true)), counted.global_store_bytes);
    assert_eq!(scaled(bytes(false)), counted.global_load_bytes);
    assert_eq!(estimate.tally.stored_sectors, sectors(true));
    assert_eq!(estimate.tally.l1_sectors, sectors(false));
}

#[test]
fn an_unrolled_loop_over_atoms_is_replayed_as_it_was_executed_whatever_is_left_over() {
    for atoms in [0, 1, 7, 8, 13, 37, 256] {
        let given = [Bytes(8192), Int(atoms), Single(0.25), Bytes(1 << 20)];
        let (traces, estimate) = replayed("coulomb", [4, 4, 2], [16, 8, 1], &given);
        equal(&traces, &estimate);
        // Four groups of square roots per atom, four stores, each by four warps.
        let count = |opcode| traces.by_opcode.get(opcode).copied().unwrap_or(0);
        assert_eq!(count("MUFU"), 16 * atoms as u64, "{atoms} atoms");
        assert_eq!(count("STG"), 16);
        assert_eq!(traces.counters.class(Class::Special), count("MUFU"));
    }
}

/// Creates a launch of this shape whose blocks all do the work of the traces.
fn coulomb_of(shape: &Shape, traces: Traces) -> Estimate {
    let arch = Arch::by_name("a100").unwrap();
    let machine = Machine::load(CUBIN, "coulomb").unwrap();
    estimate(arch, &machine, traces, shape).unwrap()
}

#[test]
fn a_replay_that_is_cut_short_goes_by_instructions_where_one_warp_does_most_of_the_work() {
    let shape = Shape {
        grid: [108 * 16, 1, 1],
        threads: 128,
        registers: 32,
        shared_bytes: 0,
    };
    let us = |atoms: i32, cut: bool| {
        let given = [Bytes(1 << 18), Int(atoms), Single(0.25), Bytes(1 << 20)];
        let (mut traces, _) = replayed("coulomb", [4, 4, 2], [16, 8, 1], &given);
        for warp in &mut traces.main.warps[1..] {
            warp.runs.truncate(1);
        }
        let found = coulomb_of(&shape, traces);
        assert_eq!(found.tally.issued >= 1_000_000, cut);
        found.us
    };
    let (whole, cut) = (us(1024, false), us(16384, true));
    assert!(
        (cut / whole / 16.0 - 1.0).abs() < 0.1,
        "{whole} and {cut} us"
    );
}

#[test]
fn waves_are_replayed_until_two_in_a_row_go_at_the_same_rate() {
    let given = [Bytes(8192), Int(64), Single(0.25), Bytes(1 << 20)];
    let (traces, _) = replayed("coulomb", [4, 4, 2], [16, 8, 1], &given);
    let block: u64 = traces.by_unit.iter().sum();
    let of = |waves: u32| {
        let shape = Shape {
            grid: [108 * 8 * waves, 1, 1],
            threads: 128,
            registers: 64,
            shared_bytes: 0,
        };
        let found = coulomb_of(&shape, traces.clone());
        assert_eq!(found.resident, 8);
        (found.tally.issued / block / 8, found.cycles)
    };
    let ((two, _), (few, short), (many, long)) = (of(2), of(10), of(40));
    assert_eq!(two, 2);
    assert!(
        (2..10).contains(&few) && many == few,
        "{few} and {many} waves"
    );
    assert!(
        (long / short / 4.0 - 1.0).abs() < 0.05,
        "{short} and {long} cycles"
    );
}

#[test]
fn odd_tiles_side_by_side_load_and_store_what_was_executed() {
    for (channels, samples) in [(19, 1000), (4, 576), (1, 31), (23, 289)] {
        let given = [
            Bytes(1 << 16),
            Bytes(4096),
            Int(channels),
            Int(samples),
            Int(2048),
            Bytes(1 << 17),
        ];
        let (traces, estimate) = replayed("dedisperse", [4, 4, 1], [48, 2, 1], &given);
        equal(&traces, &estimate);
    }
}

#[test]
fn scalar_loads_that_the_assembler_merges_take_the_wavefronts_of_the_wide_load() {
    let n = 128;
    let given = [Bytes(65536), Bytes(65536), Int(n), Bytes(65536)];
    let (traces, estimate) = replayed("tiled", [2, 2, 1], [256, 1, 1], &given);
    equal(&traces, &estimate);
    let count = |opcode| traces.by_opcode.get(opcode).copied().unwrap_or(0);
    let (warps, steps) = (8, n as u64);
    assert_eq!(count("LDS"), warps * steps * 2);
    assert_eq!(
        estimate.tally.by_unit[Unit::Shared as usize],
        count("LDS") + count("STS")
    );
    // Four numbers of a row for all lanes of a half: one wavefront per half. Those of a column for
    // each of 16 lanes: two wavefronts per half, 128 bytes each.
    let loads = warps * steps * (2 + 4);
    // Each number of both tiles is stored once, 32 at a time.
    let stores = 2 * 64 * n as u64 / 32;
    assert_eq!(estimate.tally.shared_wavefronts, loads + stores);
    assert_eq!(estimate.tally.shared_conflicts, 0);
}

#[test]
fn a_warp_that_only_asks_whether_it_may_go_on_asks_once() {
    let given = [Bytes(300 * 128), Bytes(4096)];
    let (traces, estimate) = replayed("handed", [4, 1, 1], [64, 1, 1], &given);
    assert_eq!(estimate.doubts, Vec::<String>::new());
    assert_eq!(estimate.tally.by_unit, traces.by_unit);
    // The lane polls before, in and after the loop, and takes the exchanged numbers; the loads of
    // the other warp all count.
    let count = |opcode| traces.by_opcode.get(opcode).copied().unwrap_or(0);
    assert!((2..=4).contains(&count("LDS")), "{}", count("LDS"));
    assert_eq!(count("LDG"), 300);
    assert_eq!(estimate.tally.l1_sectors, 1200);
}

#[test]
fn a_word_that_all_multiprocessors_change_is_changed_once_a_clock() {
    let cycles = |lanes: i32| {
        let given = [Bytes(4096), Int(lanes), Int(16)];
        let (_, estimate) = replayed_of(ATOMICS, "global_sums", [8, 1, 1], [256, 1, 1], &given);
        estimate.tally.atomic_cycles
    };
    // 16 times by each of eight multiprocessors: by one lane, by a warp, by the whole block.
    assert_eq!(cycles(1), 16.0 * 8.0);
    assert_eq!(cycles(32), 16.0 * 8.0 * 32.0);
    assert_eq!(cycles(256), 16.0 * 8.0 * 256.0);
}

#[test]
fn lanes_that_change_one_word_of_shared_memory_go_one_after_the_other() {
    let conflicts = |lanes: i32| {
        let given = [Bytes(8192), Int(lanes), Int(16)];
        let (traces, estimate) =
            replayed_of(ATOMICS, "shared_sums", [8, 1, 1], [256, 1, 1], &given);
        let count = traces.by_opcode.get("ATOMS").copied().unwrap_or(0);
        assert_eq!(count, 16 * 8);
        estimate.tally.shared_conflicts / count
    };
    assert_eq!([conflicts(1), conflicts(4), conflicts(32)], [0, 3, 31]);
}

#[test]
fn an_instruction_of_fixed_latency_reads_its_registers_and_a_wide_addend_as_a_pair() {
    let files = [CUBIN, include_bytes!("../tests/model/blocks.cubin")];
    let kernels = files.map(|file| sass::Cubin::read(file).unwrap().kernels);
    let (mut kept, mut pairs) = (0, 0);
    for known in kernels
        .iter()
        .flat_map(|all| all.values())
        .flat_map(|k| &k.code)
    {
        let instr = super::code::code(std::slice::from_ref(known))[0];
        let known = known.as_ref().unwrap();
        let read = instr
            .reads
            .iter()
            .filter(|read| read.register != sass::ZERO);
        let registers: Vec<u8> = read.clone().map(|read| read.register).collect();
        kept += read.filter(|read| read.reuse).count();
        match (known.opcode, known.operands.last()) {
            ("IMAD", Some(sass::Operand::Register(last))) if known.has("WIDE") => {
                assert!(
                    registers.ends_with(&[last.index, last.index + 1]),
                    "{known}"
                );
                pairs += 1;
            }
            ("FFMA", Some(sass::Operand::Register(last))) => {
                assert_eq!(registers.last(), Some(&last.index), "{known}");
            }
            _ => {}
        }
        if matches!(known.unit, Unit::Shared | Unit::Global | Unit::Branch) {
            assert_eq!(registers, [], "{known}");
        }
    }
    assert!(kept > 0 && pairs > 0, "{kept} kept, {pairs} pairs");
}
