//! Texture fetches and surface accesses leave the same memory as SASS and as PTX.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::panic, reason = "a test that cannot go on should fail")]

mod common;

use common::{Code, buffers, code, same};
use sass_machine::{Machine, Proof};
use vgpu::{
    AddressMode, Arg, ChannelKind, Checks, GlobalMemory, Image, Launch, Module, Sampler,
    TexelFormat, Texture,
};

// Compute capability 12.0 has no table; the launch limits are those of 9.0.
const CODE: [Code; 3] = [
    code!("rtx2080ti", "images.75"),
    code!("h100", "images.90"),
    code!("h100", "images.120"),
];

const FLOATS: TexelFormat = TexelFormat {
    kind: ChannelKind::Float,
    channel_bytes: 4,
    channels: 4,
};
const HALVES: TexelFormat = TexelFormat {
    channel_bytes: 2,
    channels: 2,
    ..FLOATS
};
const BYTES: TexelFormat = TexelFormat {
    kind: ChannelKind::Unsigned,
    channel_bytes: 1,
    channels: 4,
};

const THREADS: u32 = 128;

/// Allocates an image of numbers between 1/128 and 2.
fn image(
    memory: &mut GlobalMemory,
    format: TexelFormat,
    [width, height, depth]: [u32; 3],
) -> Image {
    let pitch = u64::from(width * format.bytes()) + 32;
    let slice = pitch * u64::from(height);
    let buffer = memory.alloc(slice * u64::from(depth), "texels").unwrap();
    let high = match format.kind {
        ChannelKind::Float => u64::from(format.channel_bytes) - 1,
        _ => u64::MAX,
    };
    let byte = |i: u64| {
        let mixed = ((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8;
        match i % u64::from(format.channel_bytes) == high {
            true => mixed & 0x83 | 0x3c,
            false => mixed,
        }
    };
    let bytes: Vec<u8> = (0..slice * u64::from(depth)).map(byte).collect();
    memory.write(buffer, 0, &bytes);
    Image {
        address: memory.address(buffer),
        format,
        width,
        height,
        depth,
        pitch,
        slice,
        linear: false,
    }
}

/// Executes a kernel on both levels; `first` is its first argument, and coordinates are up to `size` in
/// magnitude.
fn both(code: Code, entry: &str, memory: &mut GlobalMemory, first: Arg, size: f32) -> Proof {
    let number = |i: u32| {
        let mixed = (u64::from(i) + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (mixed as f32 / u32::MAX as f32 * 1.4 - 0.4) * size
    };
    let numbers: Vec<u8> = (0..4 * THREADS)
        .flat_map(|i| number(i).to_le_bytes())
        .collect();
    let [input, output] = buffers(memory, &numbers);
    let args = vec![first, Arg::Buffer(input), Arg::Buffer(output)];
    let mut launch = Launch::new(entry, [1, 1, 1], [THREADS, 1, 1], args);
    launch.trace = true;
    launch.checks = Checks {
        uninitialized: false,
        ..Checks::default()
    };
    let proof = code.prove(memory, &launch);
    let left = memory.read(output);
    let different = left.chunks(4).filter(|word| **word != left[..4]).count();
    assert!(different > 100, "{} {entry}: {different}", code.gpu);
    proof
}

#[test]
fn fetches_of_every_geometry_end_with_the_same_bits_on_both_levels() {
    let kernels = [
        ("line", [29, 1, 1]),
        ("plane", [29, 13, 1]),
        ("volume", [29, 13, 7]),
        ("rows", [29, 1, 6]),
        ("layers", [29, 13, 6]),
        ("cubes", [16, 16, 12]),
    ];
    let modes = [
        AddressMode::Clamp,
        AddressMode::Border,
        AddressMode::Wrap,
        AddressMode::Mirror,
    ];
    for (format, filters, normalized_coordinates) in [
        (FLOATS, true, false),
        (HALVES, false, true),
        (BYTES, true, true),
    ] {
        for mode in modes {
            for (entry, extents) in kernels {
                for code in CODE {
                    let mut memory = GlobalMemory::new(1 << 24);
                    let image = image(&mut memory, format, extents);
                    let sampler = Sampler {
                        address: [mode; 3],
                        filters,
                        normalized_coordinates,
                        normalized_values: format.kind != ChannelKind::Float,
                        srgb: false,
                        border: [1.0, 2.0, 3.0, 4.0],
                    };
                    let handle = memory.create_texture(Texture { image, sampler });
                    let handle = Arg::Bytes(handle.to_le_bytes().to_vec());
                    let size = if normalized_coordinates { 2.0 } else { 32.0 };
                    let proof = both(code, entry, &mut memory, handle, size);
                    same(proof, &format!("{} {entry} {format:?} {mode:?}", code.gpu));
                }
            }
        }
    }
}

#[test]
fn lanes_fetch_from_different_textures() {
    for code in CODE {
        let mut memory = GlobalMemory::new(1 << 24);
        let sampler = Sampler {
            address: [AddressMode::Clamp; 3],
            filters: true,
            normalized_coordinates: false,
            normalized_values: false,
            srgb: false,
            border: [0.0; 4],
        };
        let mut handles = Vec::new();
        for extents in [[29, 13, 1], [5, 7, 1]] {
            let image = image(&mut memory, FLOATS, extents);
            handles.extend(
                memory
                    .create_texture(Texture { image, sampler })
                    .to_le_bytes(),
            );
        }
        let list = memory.alloc(16, "handles").unwrap();
        memory.write(list, 0, &handles);
        same(
            both(code, "several", &mut memory, Arg::Buffer(list), 32.0),
            code.gpu,
        );
    }
}

#[test]
fn surfaces_are_read_and_written_alike_on_both_levels() {
    for code in CODE {
        for (entry, extents) in [("surfaces", [128, 43, 1]), ("slices", [32, 13, 7])] {
            for format in [FLOATS, HALVES, BYTES] {
                let mut memory = GlobalMemory::new(1 << 24);
                // A row has room for the four bytes that each thread stores.
                let image = image(&mut memory, format, extents);
                let handle = memory.create_surface(image).to_le_bytes().to_vec();
                let proof = both(code, entry, &mut memory, Arg::Bytes(handle), 30.0);
                let execution = same(proof, &format!("{} {entry} {format:?}", code.gpu));
                let opcodes = execution.by_opcode;
                assert!(opcodes.contains_key("SULD"), "{opcodes:?}");
                // Each of eight groups of four lanes looks up a line of its own, at least.
                let [block] = execution.traces.as_slice() else {
                    panic!("{} traces", execution.traces.len());
                };
                assert!(block.warps.iter().all(|warp| !warp.sectors.is_empty()));
            }
        }
    }
}

#[test]
fn an_object_that_does_not_exist_stops_the_machine_code() {
    let code = CODE[1];
    let mut memory = GlobalMemory::new(1 << 24);
    let buffer = memory.alloc(u64::from(THREADS) * 16, "in").unwrap();
    let args = vec![
        Arg::Bytes(77_u64.to_le_bytes().to_vec()),
        Arg::Buffer(buffer),
        Arg::Buffer(buffer),
    ];
    let launch = Launch::new("plane", [1, 1, 1], [THREADS, 1, 1], args);
    let machine = Machine::load(code.cubin, "plane").unwrap();
    let module = Module::load(code.ptx).unwrap();
    let error = machine.run(&module, &mut memory, &launch).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("0x4d is not a texture or surface object"),
        "{text}"
    );
}
