//! Textures and surfaces: fetches against the formulas of the CUDA C++ Programming Guide.

use super::harness::Program;
use vgpu::{
    AddressMode, Arg, BufferId, ChannelKind, HazardKind, Image, LaunchReport, Sampler, TexelFormat,
    Texture,
};

const FLOAT: TexelFormat = TexelFormat {
    kind: ChannelKind::Float,
    channel_bytes: 4,
    channels: 1,
};

/// A kernel of 32 threads with a handle `%q1`, its results at `%q2` (four words a thread), its inputs
/// `%f1` to `%f4` (as words `%r1` to `%r4`), and its body.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 t, .param .u64 in, .param .u64 out)\n{{\n\
         .reg .b16 %h<8>;\n.reg .b32 %r<16>;\n.reg .f32 %f<16>;\n.reg .b64 %q<8>;\n.reg .pred %p<2>;\n\
         ld.param.u64 %q1, [t];\nld.param.u64 %q3, [in];\nld.param.u64 %q2, [out];\n\
         mov.u32 %r10, %tid.x;\nmul.wide.u32 %q4, %r10, 16;\nadd.u64 %q3, %q3, %q4;\nadd.u64 %q2, %q2, %q4;\n\
         ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%q3];\nld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%q3];\n\
         mov.b32 %r5, 7;\nmov.b32 %r6, 7;\nmov.b32 %r7, 7;\nmov.b32 %r8, 7;\n\
         {body}\n\
         st.global.v4.b32 [%q2], {{%r5, %r6, %r7, %r8}};\nret;\n}}\n"
    )
}

/// A body whose results are floats.
fn floats(instruction: &str) -> String {
    kernel(&format!(
        "{instruction}\nmov.b32 %r5, %f5;\nmov.b32 %r6, %f6;\nmov.b32 %r7, %f7;\nmov.b32 %r8, %f8;"
    ))
}

struct Fixture {
    program: Program,
    texels: BufferId,
}

impl Fixture {
    fn new(ptx: &str, texels: &[u8]) -> Fixture {
        let mut program = Program::new(ptx);
        let buffer = program.memory.alloc(texels.len() as u64, "texels").unwrap();
        program.memory.write(buffer, 0, texels);
        Fixture {
            program,
            texels: buffer,
        }
    }

    fn image(&self, format: TexelFormat, [width, height, depth]: [u32; 3]) -> Image {
        let pitch = u64::from(width * format.bytes());
        Image {
            address: self.program.memory.address(self.texels),
            format,
            width,
            height,
            depth,
            pitch,
            slice: pitch * u64::from(height),
            linear: false,
        }
    }

    /// One thread for each input; returns its four words.
    fn run(&mut self, handle: u64, inputs: &[[u32; 4]]) -> (Vec<[u32; 4]>, LaunchReport) {
        let flat: Vec<i32> = inputs.iter().flatten().map(|word| *word as i32).collect();
        let from = self.program.ints(&flat);
        let to = self.program.unwritten(flat.len() as u64);
        let args = vec![
            Arg::Bytes(handle.to_le_bytes().to_vec()),
            Arg::Buffer(from),
            Arg::Buffer(to),
        ];
        let wanted = self.program.launch_named("k", 1, inputs.len() as u32, args);
        let report = self.program.started(&wanted);
        let words = self.program.read(to);
        let words = words.as_chunks::<4>().0.iter();
        (
            words.map(|four| four.map(|word| word as u32)).collect(),
            report,
        )
    }

    /// The first result of a fetch of each place, as floats, without hazards.
    fn fetch(&mut self, texture: Texture, places: &[[f32; 4]]) -> Vec<f32> {
        let handle = self.program.memory.create_texture(texture);
        let inputs: Vec<[u32; 4]> = places.iter().map(|place| place.map(f32::to_bits)).collect();
        let (words, report) = self.run(handle, &inputs);
        assert_eq!(report.hazards, []);
        words.iter().map(|four| f32::from_bits(four[0])).collect()
    }
}

fn sampler(mode: AddressMode, filters: bool, normalized: bool) -> Sampler {
    Sampler {
        address: [mode; 3],
        filters,
        normalized_coordinates: normalized,
        normalized_values: false,
        srgb: false,
        border: [9.0; 4],
    }
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

const ONE: &str = "tex.1d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%q1, {%f1}];";
const TWO: &str = "tex.2d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%q1, {%f1, %f2}];";

#[test]
fn one_dimension_is_interpolated_with_weights_of_eight_bits() {
    let mut fixture = Fixture::new(&floats(ONE), &bytes_of(&[0.0, 256.0, 512.0, 1024.0]));
    let image = fixture.image(FLOAT, [4, 1, 1]);
    let sampler = sampler(AddressMode::Clamp, true, false);
    let places = [0.5, 1.0, 1.8, -3.0, 7.0].map(|x| [x, 0.0, 0.0, 0.0]);
    let values = fixture.fetch(Texture { image, sampler }, &places);
    // At 1.8 the weight of the second texel is 0.3, which is 77 of 256.
    assert_eq!(values, [0.0, 128.0, 256.0 + 77.0, 0.0, 1024.0]);
}

#[test]
fn address_modes_apply_to_the_nearest_texel() {
    let texels = bytes_of(&[0.0, 1.0, 2.0, 3.0]);
    let places = [-0.1, 0.1, 0.6, 1.1, 1.9].map(|x| [x, 0.0, 0.0, 0.0]);
    let expected = [
        (AddressMode::Clamp, [0.0, 0.0, 2.0, 3.0, 3.0]),
        (AddressMode::Border, [9.0, 0.0, 2.0, 9.0, 9.0]),
        (AddressMode::Wrap, [3.0, 0.0, 2.0, 0.0, 3.0]),
        (AddressMode::Mirror, [0.0, 0.0, 2.0, 3.0, 0.0]),
    ];
    for (mode, values) in expected {
        let mut fixture = Fixture::new(&floats(ONE), &texels);
        let image = fixture.image(FLOAT, [4, 1, 1]);
        let sampler = sampler(mode, false, true);
        let found = fixture.fetch(Texture { image, sampler }, &places);
        assert_eq!(found, values, "{mode:?}");
    }
}

#[test]
fn two_and_three_dimensions_are_interpolated() {
    let texels: Vec<f32> = (0..24).map(|at| at as f32).collect();
    let mut fixture = Fixture::new(&floats(TWO), &bytes_of(&texels));
    let mut image = fixture.image(FLOAT, [4, 3, 1]);
    let filter = sampler(AddressMode::Clamp, true, false);
    let places = [
        [1.5, 1.5, 0.0, 0.0],
        [2.0, 1.0, 0.0, 0.0],
        [0.0, 3.0, 0.0, 0.0],
    ];
    let texture = Texture {
        image,
        sampler: filter,
    };
    assert_eq!(fixture.fetch(texture, &places), [5.0, 3.5, 8.0]);

    let three = "tex.3d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%q1, {%f1, %f2, %f3, %f3}];";
    let mut fixture = Fixture::new(&floats(three), &bytes_of(&texels));
    image = fixture.image(FLOAT, [4, 3, 2]);
    let texture = Texture {
        image,
        sampler: filter,
    };
    assert_eq!(fixture.fetch(texture, &[[1.5, 1.5, 1.0, 0.0]]), [11.0]);
}

#[test]
fn layers_and_faces_are_not_interpolated() {
    let texels: Vec<f32> = (0..24).map(|at| at as f32).collect();
    let layered = "tex.a2d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%q1, {%r3, %f1, %f2, %f2}];";
    let mut fixture = Fixture::new(&floats(layered), &bytes_of(&texels));
    let image = fixture.image(FLOAT, [2, 2, 6]);
    let filter = sampler(AddressMode::Clamp, true, false);
    let layer = |x, y, layer: u32| [x, y, f32::from_bits(layer), 0.0];
    let places = [
        layer(1.0, 1.0, 2),
        layer(0.5, 0.5, 99),
        layer(0.5, 0.5, u32::MAX),
    ];
    let texture = Texture {
        image,
        sampler: filter,
    };
    // A layer beyond the last is the last; its number has no sign.
    assert_eq!(fixture.fetch(texture, &places), [9.5, 20.0, 20.0]);

    let cube = "tex.cube.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%q1, {%f1, %f2, %f3, %f3}];";
    let mut fixture = Fixture::new(&floats(cube), &bytes_of(&texels));
    let image = fixture.image(FLOAT, [2, 2, 6]);
    let nearest = sampler(AddressMode::Clamp, false, true);
    let texture = Texture {
        image,
        sampler: nearest,
    };
    let places = [[1.0, -0.5, -0.5, 0.0], [-0.5, 0.5, -1.0, 0.0]];
    assert_eq!(fixture.fetch(texture, &places), [3.0, 21.0]);
}

#[test]
fn narrow_texels_are_integers_or_normalized_floats() {
    let format = TexelFormat {
        kind: ChannelKind::Signed,
        channel_bytes: 1,
        channels: 4,
    };
    let texels = [0x80, 0x7f, 0xff, 1];
    let words = kernel("tex.1d.v4.s32.f32 {%r5, %r6, %r7, %r8}, [%q1, {%f1}];");
    let mut fixture = Fixture::new(&words, &texels);
    let image = fixture.image(format, [1, 1, 1]);
    let mut rules = sampler(AddressMode::Clamp, false, false);
    let texture = Texture {
        image,
        sampler: rules,
    };
    let handle = fixture.program.memory.create_texture(texture);
    let (found, _) = fixture.run(handle, &[[0; 4]]);
    assert_eq!(found[0].map(|word| word as i32), [-128, 127, -1, 1]);

    rules.normalized_values = true;
    let mut fixture = Fixture::new(&floats(ONE), &texels);
    let image = fixture.image(format, [1, 1, 1]);
    let texture = Texture {
        image,
        sampler: rules,
    };
    let handle = fixture.program.memory.create_texture(texture);
    let (found, _) = fixture.run(handle, &[[0; 4]]);
    let expected = [-1.0, 1.0, -1.0 / 127.0, 1.0 / 127.0];
    assert_eq!(found[0].map(f32::from_bits), expected);
}

#[test]
fn linear_memory_returns_zero_beyond_its_end() {
    let words = kernel("tex.1d.v4.s32.s32 {%r5, %r6, %r7, %r8}, [%q1, {%r1}];");
    let texels: Vec<u8> = [11, 22, 33]
        .iter()
        .flat_map(|v: &i32| v.to_le_bytes())
        .collect();
    let mut fixture = Fixture::new(&words, &texels);
    let format = TexelFormat {
        kind: ChannelKind::Signed,
        ..FLOAT
    };
    let image = Image {
        linear: true,
        ..fixture.image(format, [3, 1, 1])
    };
    let sampler = sampler(AddressMode::Clamp, false, false);
    let handle = fixture
        .program
        .memory
        .create_texture(Texture { image, sampler });
    let places = [0, 2, 3, u32::MAX].map(|at| [at, 0, 0, 0]);
    let (found, report) = fixture.run(handle, &places);
    assert_eq!(report.hazards, []);
    assert_eq!(
        found.iter().map(|four| four[0]).collect::<Vec<_>>(),
        [11, 33, 0, 0]
    );
}

#[test]
fn a_gather_returns_one_channel_of_four_texels() {
    let gather = "tld4.g.2d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%q1, {%f1, %f2}];";
    // Channel 1 of texel (x, y) is 10·y + x.
    let texels: Vec<f32> = (0..9)
        .flat_map(|at| [-1.0, (at / 3 * 10 + at % 3) as f32])
        .collect();
    let mut fixture = Fixture::new(&floats(gather), &bytes_of(&texels));
    let format = TexelFormat {
        channels: 2,
        ..FLOAT
    };
    let image = fixture.image(format, [3, 3, 1]);
    let sampler = sampler(AddressMode::Clamp, false, false);
    let handle = fixture
        .program
        .memory
        .create_texture(Texture { image, sampler });
    let at = [1.9_f32, 1.2, 0.0, 0.0].map(f32::to_bits);
    let (found, _) = fixture.run(handle, &[at]);
    assert_eq!(found[0].map(f32::from_bits), [11.0, 12.0, 2.0, 1.0]);
}

#[test]
fn queries_return_the_extents() {
    let words = kernel(
        "txq.width.b32 %r5, [%q1];\ntxq.height.b32 %r6, [%q1];\ntxq.depth.b32 %r7, [%q1];\n\
         txq.normalized_coords.b32 %r8, [%q1];",
    );
    let mut fixture = Fixture::new(&words, &[0; 96]);
    let image = fixture.image(FLOAT, [4, 3, 2]);
    let sampler = sampler(AddressMode::Clamp, false, true);
    let handle = fixture
        .program
        .memory
        .create_texture(Texture { image, sampler });
    let (found, _) = fixture.run(handle, &[[0; 4]]);
    assert_eq!(found, [[4, 3, 2, 1]]);
}

#[test]
fn surfaces_are_read_and_written_by_bytes() {
    let body = "suld.b.2d.v2.b16.trap {%h1, %h2}, [%q1, {%r1, %r2}];\ncvt.u32.u16 %r5, %h1;\n\
                cvt.u32.u16 %r6, %h2;\nsust.b.2d.b32.trap [%q1, {%r3, %r4}], {%r10};";
    let texels: Vec<u8> = (0..32).collect();
    let mut fixture = Fixture::new(&kernel(body), &texels);
    let image = fixture.image(FLOAT, [4, 2, 1]);
    let handle = fixture.program.memory.create_surface(image);
    let (found, report) = fixture.run(handle, &[[4, 1, 0, 0], [8, 0, 4, 0]]);
    assert_eq!(report.hazards, []);
    let first: Vec<[u32; 2]> = found.iter().map(|four| [four[0], four[1]]).collect();
    assert_eq!(first, [[0x1514, 0x1716], [0x0908, 0x0b0a]]);
    let stored = fixture.program.read(fixture.texels);
    assert_eq!(stored[..2], [0, 1]);
}

#[test]
fn a_formatted_store_saturates() {
    let format = TexelFormat {
        kind: ChannelKind::Unsigned,
        channel_bytes: 1,
        channels: 4,
    };
    let body = "sust.p.1d.v4.b32.trap [%q1, {%r10}], {%r1, %r2, %r3, %r4};";
    let mut fixture = Fixture::new(&kernel(body), &[0; 8]);
    let image = fixture.image(format, [2, 1, 1]);
    let handle = fixture.program.memory.create_surface(image);
    fixture.run(handle, &[[1, 2, 3, 300], [255, 256, 0, 9]]);
    let stored = fixture.program.memory.read(fixture.texels);
    assert_eq!(stored, [1, 2, 3, 255, 255, 255, 0, 9]);
}

#[test]
fn accesses_outside_a_surface_follow_the_boundary_mode() {
    let run = |mode: &str, at: u32| {
        let body = format!("suld.b.1d.b32.{mode} {{%r5}}, [%q1, {{%r1}}];");
        let mut fixture = Fixture::new(&kernel(&body), &bytes_of(&[5.0, 6.0]));
        let image = fixture.image(FLOAT, [2, 1, 1]);
        let handle = fixture.program.memory.create_surface(image);
        let (found, report) = fixture.run(handle, &[[at, 0, 0, 0]]);
        (f32::from_bits(found[0][0]), report.hazards)
    };
    assert_eq!(run("clamp", 100), (6.0, Vec::new()));
    assert_eq!(run("zero", 100), (0.0, Vec::new()));
    let (_, hazards) = run("trap", 8);
    assert_eq!(hazards[0].kind, HazardKind::OutOfBounds);
    let text = "a read of 4 bytes at byte 8 of row 0 in slice 0 of a surface with 8 bytes a row";
    assert!(hazards[0].detail.contains(text), "{hazards:?}");
}

#[test]
fn unordered_accesses_of_a_surface_are_a_race() {
    let body = "sust.b.1d.b32.trap [%q1, {%r1}], {%r10};";
    let mut fixture = Fixture::new(&kernel(body), &[0; 8]);
    let image = fixture.image(FLOAT, [2, 1, 1]);
    let handle = fixture.program.memory.create_surface(image);
    let (_, report) = fixture.run(handle, &[[4, 0, 0, 0], [4, 0, 0, 0]]);
    assert_eq!(report.hazards[0].kind, HazardKind::Race);
}

#[test]
fn texels_that_were_never_written_are_reported() {
    let mut fixture = Fixture::new(&floats(ONE), &[]);
    let buffer = fixture.program.unwritten(4);
    fixture.program.memory.write(buffer, 0, &[0; 8]);
    let image = Image {
        address: fixture.program.memory.address(buffer),
        ..fixture.image(FLOAT, [4, 1, 1])
    };
    let sampler = sampler(AddressMode::Clamp, true, false);
    let handle = fixture
        .program
        .memory
        .create_texture(Texture { image, sampler });
    // Beside the written texels the unwritten one has no weight.
    let (_, report) = fixture.run(handle, &[[1.5_f32.to_bits(), 0, 0, 0]]);
    assert_eq!(report.hazards, []);
    let (_, report) = fixture.run(handle, &[[1.75_f32.to_bits(), 0, 0, 0]]);
    assert_eq!(report.hazards[0].kind, HazardKind::Uninitialized);
}

#[test]
fn a_destroyed_object_stops_the_kernel() {
    let mut fixture = Fixture::new(&floats(ONE), &[0; 16]);
    let image = fixture.image(FLOAT, [4, 1, 1]);
    let sampler = sampler(AddressMode::Clamp, false, false);
    let handle = fixture
        .program
        .memory
        .create_texture(Texture { image, sampler });
    assert!(fixture.program.memory.destroy_object(handle));
    assert!(!fixture.program.memory.destroy_object(handle));
    let (_, report) = fixture.run(handle, &[[0; 4]]);
    let hazard = &report.hazards[0];
    assert_eq!(hazard.kind, HazardKind::Crashed);
    assert!(hazard.detail.contains("not a texture"), "{hazard:?}");
}

#[test]
fn missing_forms_are_unsupported_by_name() {
    let cases = [
        "tex.2d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%q1, %q2, {%f1, %f2}];",
        "tex.2d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%q1, {%f1, %f2}], {%r1, %r2};",
        "sured.b.add.1d.u32.trap [%q1, {%r1}], %r2;",
        "txq.channel_order.b32 %r5, [%q1];",
    ];
    for instruction in cases {
        let module = vgpu::Module::load(&kernel(instruction)).unwrap();
        let unsupported = module.supported("k").unwrap_err();
        let name = instruction.split(' ').next().unwrap();
        assert!(unsupported.instruction.starts_with(name), "{unsupported:?}");
    }
}
