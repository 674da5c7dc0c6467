//! Executed SASS leaves the same memory as the PTX, bit by bit.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::panic, reason = "a test that cannot go on should fail")]

mod common;

use common::{Code, buffers, code, same};
use sass_machine::{Execution, Machine, Proof, SassRun, prove};
use vgpu::exec::launch::BlockSet;
use vgpu::{Arch, Arg, Checks, GlobalMemory, Launch, Module};

// Compute capability 12.0 has no table; the launch limits are those of 9.0.
const FORMS: [Code; 5] = [
    code!("rtx2080ti", "forms.75"),
    code!("a100", "forms.80"),
    code!("l4", "forms.89"),
    code!("h100", "forms.90"),
    code!("h100", "forms.120"),
];
const RARE: [Code; 5] = [
    code!("rtx2080ti", "rare.75"),
    code!("a100", "rare.80"),
    code!("l4", "rare.89"),
    code!("h100", "rare.90"),
    code!("h100", "rare.120"),
];
const CORNERS: [Code; 3] = [
    code!("rtx2080ti", "corners.75"),
    code!("h100", "corners.90"),
    code!("b200", "corners.100"),
];

/// Number of words in the input and in the output.
const WORDS: u64 = 4096;
/// Number of elements in the kernels' arguments: not a multiple of a block or a warp.
const ELEMENTS: i32 = 1000;

/// Generates words with many bits, few bits and none (Weyl's sequence, mixed).
fn words() -> Vec<u8> {
    let word = |i: u64| {
        let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
        match i % 8 {
            0 => [0, 1, u32::MAX, 0x8000_0000, 0x7fff_ffff][(i / 8 % 5) as usize],
            1 | 2 => mixed as u32 & 0xff,
            _ => mixed as u32,
        }
    };
    (0..WORDS).flat_map(|i| word(i).to_le_bytes()).collect()
}

fn launched(entry: &str, memory: &mut GlobalMemory) -> Launch {
    let [input, output] = buffers(memory, &words());
    let args = vec![
        Arg::Buffer(input),
        Arg::Buffer(output),
        Arg::Bytes(ELEMENTS.to_le_bytes().to_vec()),
    ];
    let (grid, block) = if entry == "tiles" { (1, 32) } else { (4, 256) };
    let mut launch = Launch::new(entry, [grid, 1, 1], [block, 1, 1], args);
    launch.dynamic_shared_bytes = 4096;
    launch.trace = true;
    launch.threads = 1;
    launch.checks = Checks {
        races: false,
        uninitialized: false,
        ..Checks::default()
    };
    launch
}

fn both(code: Code, entry: &str) -> Proof {
    let mut memory = GlobalMemory::new(1 << 30);
    let launch = launched(entry, &mut memory);
    code.prove(&mut memory, &launch)
}

fn executed(code: Code, entry: &str) -> Box<Execution> {
    same(both(code, entry), &format!("{} {entry}", code.gpu))
}

/// Executes kernels of several files on both levels, and names all that differ.
fn all_same(files: &[Code], entries: &[&str]) {
    let mut wrong = Vec::new();
    for code in files {
        for entry in entries {
            // Compute capability 7.5 has no matrices of halves in tiles of 16.
            if *entry == "tiles" && code.gpu == "rtx2080ti" {
                continue;
            }
            match both(*code, entry) {
                Proof::Same(_) => {}
                other => wrong.push(format!("{} {entry}: {other:?}", code.gpu)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_load_of_constants_may_write_the_register_of_its_address() {
    let code = code!("h100", "constants.90");
    let machine = Machine::load(code.cubin, "corners_of").unwrap();
    let overlaps = machine.code().iter().flatten().any(|i| {
        let text = i.to_string();
        let registers = text.trim().strip_prefix("LDC.64 R");
        let to = registers.and_then(|rest| rest.split_once(", c[0x3][R"));
        to.is_some_and(|(to, address)| address.starts_with(to))
    });
    assert!(overlaps, "the compiler gave no such load");
    executed(code, "corners_of");
}

#[test]
fn pairs_extremes_of_three_and_accesses_of_eight_words_end_with_the_same_bits_on_both_levels() {
    let code = code!("b200", "pairs.100");
    for entry in ["pairs", "extremes", "mixed", "warps", "eights"] {
        executed(code, entry);
    }
    let eights = Machine::load(code.cubin, "eights").unwrap();
    let code = eights.code().iter().flatten();
    let texts: Vec<String> = code.map(|i| i.to_string()).collect();
    let long = |has: fn(&str) -> bool| texts.iter().any(|text| text.contains(".256") && has(text));
    assert!(
        long(|text| text.contains("LDG") && text.contains(", 0x")),
        "{texts:?}"
    );
    assert!(
        long(|text| text.contains("LDG") && !text.contains(", 0x")),
        "{texts:?}"
    );
    assert!(long(|text| text.contains("STG")), "{texts:?}");
}

#[test]
fn integers_floats_exchanges_and_memory_end_with_the_same_bits_on_both_levels() {
    all_same(&FORMS, &["integers", "floats", "lanes", "spaces", "tiles"]);
}

#[test]
fn rare_instructions_and_calls_end_with_the_same_bits_on_both_levels() {
    let entries = ["doubles", "conversions", "halves", "calls", "arrivals"];
    all_same(&RARE, &entries);
}

#[test]
fn rare_modifiers_and_colliding_atomics_end_with_the_same_bits_on_both_levels() {
    all_same(&CORNERS, &["halves", "atomics"]);
}

#[test]
fn products_of_scaled_blocks_end_with_the_same_bits_on_both_levels() {
    let execution = executed(code!("rtx5090", "scaled.120"), "scaled");
    assert!(execution.by_opcode.contains_key("OMMA"));
}

#[test]
fn a_warp_that_arrives_twice_in_a_phase_of_a_named_barrier_counts_twice() {
    let execution = executed(code!("h100", "turns.90"), "turns");
    assert!(execution.by_opcode.contains_key("UTMAPF"));
}

#[test]
fn products_are_rounded_with_their_sums_as_the_assembler_rounds_them() {
    let code = code!("l4", "contracted.89");
    assert!(matches!(both(code, "weights"), Proof::Differs(..)));
    let module = Module::load_contracted(code.ptx).unwrap();
    let mut memory = GlobalMemory::new(1 << 30);
    let launch = launched("weights", &mut memory);
    let proof = code.prove_module(&module, &mut memory, &launch);
    assert!(same(proof, "weights").by_opcode.contains_key("FFMA"));
}

#[test]
fn a_block_that_waits_for_others_is_told_from_one_that_works() {
    let code = code!("l4", "waiting.89");
    let machine = Machine::load(code.cubin, "waiting").unwrap();
    let mut memory = GlobalMemory::new(1 << 30);
    let buffers = [512_usize, 4, 16, 512].map(|bytes| {
        let buffer = memory.alloc(bytes as u64, "buffer").unwrap();
        memory.write(buffer, 0, &vec![0; bytes]);
        Arg::Buffer(buffer)
    });
    let mut launch = Launch::new("waiting", [4, 1, 1], [32, 1, 1], buffers.to_vec());
    launch.instruction_budget = 1 << 16;
    launch.blocks = BlockSet::List(vec![1]);
    launch.trace = true;
    let module = Module::load(code.ptx).unwrap();
    let alone = SassRun::execute(&machine, &module, &mut memory, &launch);
    assert!(alone.stopped() && alone.waits());
    let machine = Machine::load(FORMS[3].cubin, "integers").unwrap();
    let mut memory = GlobalMemory::new(1 << 30);
    let launch = launched("integers", &mut memory);
    let module = Module::load(FORMS[3].ptx).unwrap();
    let working = SassRun::execute(&machine, &module, &mut memory, &launch);
    assert!(working.ended() && !working.waits());
}

#[test]
fn instructions_are_counted_by_opcode_as_warps_execute_them() {
    let execution = executed(FORMS[1], "tiles");
    let count = |opcode| execution.by_opcode.get(opcode).copied().unwrap_or(0);
    // One warp, one m16n8k16 product, two matrix loads, two copies.
    assert_eq!(
        [count("HMMA"), count("LDSM"), count("LDGSTS"), count("BAR")],
        [1, 2, 2, 2]
    );
    assert_eq!(
        execution.by_opcode.values().sum::<u64>(),
        execution.warp_instructions
    );
    assert!(execution.thread_instructions <= 32 * execution.warp_instructions);
}

#[test]
fn a_copy_moves_as_many_sectors_as_it_has_bytes() {
    let code = Code {
        gpu: "a100",
        ptx: include_str!("../../model/tests/model/blocks.ptx"),
        cubin: include_bytes!("../../model/tests/model/blocks.cubin"),
    };
    let mut memory = GlobalMemory::new(1 << 30);
    let [from, to] = buffers(&mut memory, &words());
    let args = vec![
        Arg::Buffer(from),
        Arg::Buffer(to),
        Arg::Bytes(64_u32.to_le_bytes().to_vec()),
    ];
    let launch = Launch::new("turn", [2, 2, 1], [32, 8, 1], args);
    let execution = same(code.prove(&mut memory, &launch), "turn");
    let count = |opcode| execution.by_opcode.get(opcode).copied().unwrap_or(0);
    // 4096 words, 32 of a warp at a time.
    assert_eq!([count("LDG"), count("STG")], [128, 128]);
    assert_eq!(memory.read(to)[..4], memory.read(from)[..4]);
}

#[test]
fn damaged_machine_code_is_an_error_and_no_panic() {
    let code = FORMS[1];
    let module = Module::load(code.ptx).unwrap();
    for seed in 0..200usize {
        let mut torn = code.cubin.to_vec();
        let at = (seed * 7919 + 13) % torn.len();
        torn[at] ^= 1 << (seed % 8);
        let Ok(machine) = Machine::load(&torn, "lanes") else {
            continue;
        };
        let mut memory = GlobalMemory::new(1 << 30);
        let mut launch = launched("lanes", &mut memory);
        launch.grid = [1, 1, 1];
        launch.instruction_budget = 1 << 16;
        _ = prove(
            &machine,
            &module,
            &mut memory,
            Arch::by_name(code.gpu).unwrap(),
            &launch,
        );
    }
}

#[test]
fn quarters_of_a_turn_have_the_sines_and_cosines_that_they_have() {
    use gpu_arithmetic::approx::{cos_turns, sin_turns};
    let sines = [0.0, 0.25, 0.5, 0.75, 1.0, -0.25].map(sin_turns);
    assert_eq!(sines, [0.0, 1.0, 0.0, -1.0, 0.0, -1.0]);
    let cosines = [0.0, 0.25, 0.5, 0.75, 1.0, -0.5].map(cos_turns);
    assert_eq!(cosines, [1.0, 0.0, -1.0, 0.0, 1.0, -1.0]);
    assert!(sin_turns(f32::INFINITY).is_nan());
}

/// One launch of a folder's corpus: entry, blocks, threads, arguments (`b` a buffer, else
/// hexadecimal bytes).
fn told(line: &str, alone: bool, memory: &mut GlobalMemory) -> Launch {
    let mut words = line.split_whitespace();
    let entry = words.next().unwrap();
    let (grid, block) = words.next().unwrap().split_once(',').unwrap();
    let args = words.map(|word| match word {
        "b" => {
            let buffer = memory.alloc(1 << 16, "buffer").unwrap();
            memory.write(buffer, 0, &mixed());
            Arg::Buffer(buffer)
        }
        hex => {
            let pairs = (0..hex.len()).step_by(2);
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            Arg::Bytes(pairs.map(byte).collect())
        }
    });
    let args = args.collect();
    let [grid, block] = [grid, block].map(|n| if alone { 1 } else { n.parse().unwrap() });
    let mut launch = Launch::new(entry, [grid, 1, 1], [block, 1, 1], args);
    launch.dynamic_shared_bytes = 16384;
    launch.trace = true;
    launch.threads = 1;
    launch.instruction_budget = 1 << 22;
    launch
}

/// Generates numbers of all formats in turn: two words, two singles, four halves, a double.
fn mixed() -> Vec<u8> {
    let raw = words();
    let single = |word: u32| word & 0x80ff_ffff | (0x3e00_0000 + (word >> 24 & 3) * 0x0100_0000);
    let groups = raw.chunks_exact(8).enumerate().map(|(n, group)| {
        let bits = u64::from_le_bytes(group.try_into().unwrap());
        match n % 6 {
            1 | 2 => u64::from(single(bits as u32)) | u64::from(single((bits >> 32) as u32)) << 32,
            3 => bits & 0x87ff_87ff_87ff_87ff | 0x3800_3800_3800_3800,
            4 => bits & 0x803f_ffff_ffff_ffff | 0x3fc0_0000_0000_0000,
            _ => bits,
        }
    });
    let bytes: Vec<u8> = groups.flat_map(u64::to_le_bytes).collect();
    bytes.into_iter().cycle().take(1 << 16).collect()
}

/// Compares PTX and SASS of a launch; returns success and a description.
fn compared(gpu: &str, module: &Module, cubin: &[u8], line: &str) -> (bool, String) {
    let entry = line.split_whitespace().next().unwrap();
    if let Err(why) = module.supported(entry) {
        return (true, format!("PTX: {}", why.instruction));
    }
    let machine = Machine::load(cubin, entry).unwrap();
    let arch = Arch::by_name(gpu).unwrap();
    // A kernel that is wrong with many threads may be right with one.
    for alone in [false, true] {
        let mut memory = GlobalMemory::new(1 << 30);
        let launch = told(line, alone, &mut memory);
        let (report, proof) = match prove(&machine, module, &mut memory, arch, &launch) {
            Ok(found) => found,
            Err(error) => return (true, format!("refused: {error}")),
        };
        let unknown = matches!(&proof, Proof::NotAvailable(error) if error.to_string().starts_with("instruction "));
        if !report.hazards.is_empty() && !unknown {
            continue;
        }
        return match proof {
            Proof::Same(_) => (true, "same".to_owned()),
            Proof::Rounded { .. } => (true, "rounded".to_owned()),
            Proof::Unfinished(_) => (true, format!("unfinished: {:?}", report.end)),
            Proof::NotAvailable(error) => (false, error.to_string()),
            Proof::Differs(words, first) => (false, format!("{words} words: {:x?}", first[0])),
        };
    }
    (true, "a wrong kernel".to_owned())
}

#[test]
#[ignore = "needs a folder ARCH/NAME.{ptx,cubin,args}: set MACHINE_CORPUS"]
fn kernels_of_a_folder_end_with_the_same_bits_on_both_levels() {
    let folder = std::env::var("MACHINE_CORPUS").expect("MACHINE_CORPUS: folder of kernels");
    let only = std::env::var("MACHINE_ONLY").unwrap_or_default();
    let mut counts = std::collections::BTreeMap::<String, u32>::new();
    let mut wrong = Vec::new();
    let listed = |path: &std::path::Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    for arch in listed(folder.as_ref()) {
        let name = arch.file_name().unwrap().to_string_lossy().into_owned();
        let gpu = match name.as_str() {
            "75" => "rtx2080ti",
            "80" => "a100",
            "86" => "a6000",
            "89" => "l4",
            _ => "h100",
        };
        for file in listed(&arch) {
            if file.extension().is_none_or(|e| e != "args") {
                continue;
            }
            let text = std::fs::read_to_string(file.with_extension("ptx")).unwrap();
            let cubin = std::fs::read(file.with_extension("cubin")).unwrap();
            let module = match Module::load_contracted(&text) {
                Ok(module) => module,
                Err(error) => {
                    *counts.entry(error.to_string()).or_default() += 1;
                    continue;
                }
            };
            let lines = std::fs::read_to_string(&file).unwrap();
            for line in lines.lines().filter(|line| line.contains(&only)) {
                let (right, what) = compared(gpu, &module, &cubin, line);
                if right {
                    *counts.entry(what).or_default() += 1;
                } else {
                    let entry = line.split_whitespace().next().unwrap();
                    let file = file.file_stem().unwrap().to_string_lossy().into_owned();
                    wrong.push(format!("{name} {file} {entry}: {what}"));
                }
            }
        }
    }
    for (what, count) in counts {
        println!("{count:6} {what}");
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
