//! `tensormap.replace` and `tensormap.cp_fenceproxy`: each field of a map by the values that the driver takes, and its
//! place by the code that ptxas 13.0 writes for it.

use crate::harness::launch_words;
use vgpu::{Module, TENSOR_MAP_BYTES, TensorElement as Element, TensorMap};

type Change = fn(&mut TensorMap);

const WORDS: usize = TENSOR_MAP_BYTES / 8;

fn map() -> TensorMap {
    TensorMap {
        element: Element::F16,
        address: 0x7000_0012_3450,
        sizes: vec![4096, 300, 7, 9, 11],
        strides: vec![8192, 1 << 22, 3 << 30, 5 << 36],
        boxes: vec![64, 128, 1, 2, 3],
        steps: vec![1, 2, 3, 4, 5],
        interleave: 0,
        swizzle: 3,
        promotion: 2,
        fills_nan: false,
        pixels: None,
    }
}

/// Returns the words of a map that a thread changed in a state space.
fn changed(map: &TensorMap, space: &str, change: &str) -> Vec<u64> {
    let at = match space {
        "shared::cta" => "mov.u32 %a, box; mov.u64 %at, 0; cvt.u64.u32 %at, %a;",
        _ => "mov.u64 %at, %out;",
    };
    let (access, space) = match space {
        "" => ("", String::new()),
        "shared::cta" => (".shared", ".shared::cta".to_owned()),
        other => (".global", format!(".{other}")),
    };
    let change = change.replace("SPACE", &space);
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n\
         .visible .entry k(.param .u64 out, .param .u64 in) {{\n\
         .shared .align 128 .b8 box[128];\n.reg .b32 %a; .reg .b64 %at, %out, %in, %w; .reg .pred %p;\n\
         ld.param.u64 %out, [out]; ld.param.u64 %in, [in];\n{at}\n\
         {copied}\n{change}\n{back}\nret;\n}}\n",
        copied = copy("", "%in", access, "%at"),
        back = copy(access, "%at", "", "%out"),
    );
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{change}: {e}"));
    launch_words(&module, "k", 1, 1, &words(map), WORDS, &change)
}

fn copy(from_space: &str, from: &str, to_space: &str, to: &str) -> String {
    let words = (0..WORDS).map(|n| {
        let at = 8 * n;
        format!("ld{from_space}.u64 %w, [{from}+{at}]; st{to_space}.u64 [{to}+{at}], %w;\n")
    });
    words.collect()
}

fn words(map: &TensorMap) -> Vec<u64> {
    let bytes = map.encode();
    let words = bytes
        .as_chunks()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word));
    words.collect()
}

fn decoded(words: &[u64]) -> Result<TensorMap, String> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    TensorMap::decode(&bytes).map_err(|why| why.to_string())
}

#[test]
fn each_field_of_a_map_takes_its_new_value() {
    let cases: [(&str, Change); 21] = [
        ("global_addressSPACE.b1024.b64 [%at], 0x123456789ab0", |m| {
            m.address = 0x1234_5678_9ab0;
        }),
        ("rankSPACE.b1024.b32 [%at], 1", |m| {
            m.sizes.truncate(2);
            m.strides.truncate(1);
            m.boxes.truncate(2);
            m.steps.truncate(2);
        }),
        ("box_dimSPACE.b1024.b32 [%at], 0, 8", |m| m.boxes[0] = 8),
        ("box_dimSPACE.b1024.b32 [%at], 1, 256", |m| m.boxes[1] = 256),
        ("box_dimSPACE.b1024.b32 [%at], 4, 77", |m| m.boxes[4] = 77),
        ("global_dimSPACE.b1024.b32 [%at], 0, 1", |m| m.sizes[0] = 1),
        ("global_dimSPACE.b1024.b32 [%at], 4, -1", |m| {
            m.sizes[4] = 0xffff_ffff;
        }),
        ("global_dimSPACE.b1024.b32 [%at], 2, 0", |m| {
            m.sizes[2] = 1 << 32
        }),
        ("global_strideSPACE.b1024.b64 [%at], 0, 0xfffffffff0", |m| {
            m.strides[0] = 0xff_ffff_fff0;
        }),
        ("global_strideSPACE.b1024.b64 [%at], 3, 16", |m| {
            m.strides[3] = 16
        }),
        ("element_strideSPACE.b1024.b32 [%at], 1, 8", |m| {
            m.steps[1] = 8
        }),
        ("element_strideSPACE.b1024.b32 [%at], 4, 1", |m| {
            m.steps[4] = 1
        }),
        ("elemtypeSPACE.b1024.b32 [%at], 10", |m| {
            m.element = Element::Bf16
        }),
        ("elemtypeSPACE.b1024.b32 [%at], 13", |m| {
            m.element = Element::U4
        }),
        ("elemtypeSPACE.b1024.b32 [%at], 1", |m| {
            m.element = Element::U16
        }),
        ("swizzle_modeSPACE.b1024.b32 [%at], 0", |m| m.swizzle = 0),
        ("swizzle_atomicitySPACE.b1024.b32 [%at], 1", |m| {
            m.swizzle = 4
        }),
        ("swizzle_atomicitySPACE.b1024.b32 [%at], 3", |m| {
            m.swizzle = 6
        }),
        ("interleave_layoutSPACE.b1024.b32 [%at], 1", |m| {
            m.interleave = 1
        }),
        ("fill_modeSPACE.b1024.b32 [%at], 1", |m| m.fills_nan = true),
        ("fill_modeSPACE.b1024.b32 [%at], 0", |_| {}),
    ];
    for (change, expected) in cases {
        let mut wanted = map();
        expected(&mut wanted);
        for space in ["shared::cta", "global", ""] {
            let change = format!("tensormap.replace.tile.{change};");
            let found = decoded(&changed(&map(), space, &change));
            assert_eq!(found, Ok(wanted.clone()), "{space} {change}");
        }
    }
}

#[test]
fn the_types_of_elements_have_their_own_numbers() {
    let wide = TensorMap {
        boxes: vec![16, 1, 1, 1, 1],
        ..map()
    };
    let types = [
        Element::U8,
        Element::U16,
        Element::U32,
        Element::S32,
        Element::U64,
        Element::S64,
        Element::F16,
        Element::F32,
        Element::F32Ftz,
        Element::F64,
        Element::Bf16,
        Element::Tf32,
        Element::Tf32Ftz,
    ];
    for (number, element) in types.into_iter().enumerate() {
        // From a rounded type: the rounding goes, too.
        let change = format!(
            "tensormap.replace.tile.elemtypeSPACE.b1024.b32 [%at], 12;\n\
             tensormap.replace.tile.elemtypeSPACE.b1024.b32 [%at], {number};"
        );
        let found = decoded(&changed(&wide, "global", &change)).unwrap();
        assert_eq!(found.element, element);
    }
}

#[test]
fn fields_have_the_places_of_the_assembler() {
    // The words and masks of the code that ptxas 13.0 writes for `sm_90a`.
    let places = [
        ("box_dimSPACE.b1024.b32 [%at], 0, 256", 0x34, 0xff00_0000),
        ("box_dimSPACE.b1024.b32 [%at], 2, 256", 0x38, 0xff00_u64),
        ("global_dimSPACE.b1024.b32 [%at], 3, 0", 0x2c, 0xffff_ffff),
        ("element_strideSPACE.b1024.b32 [%at], 4, 8", 0x34, 0x7000),
        (
            "global_strideSPACE.b1024.b64 [%at], 2, 0xf000000000",
            0x1c,
            0xf00,
        ),
        ("rankSPACE.b1024.b32 [%at], 7", 8, 0x70),
        ("elemtypeSPACE.b1024.b32 [%at], 10", 8, 0x500),
        ("swizzle_modeSPACE.b1024.b32 [%at], 3", 8, 0x6000),
        ("fill_modeSPACE.b1024.b32 [%at], 1", 8, 0x8000),
        ("swizzle_atomicitySPACE.b1024.b32 [%at], 3", 8, 0x18_0000),
    ];
    let empty = TensorMap {
        address: 0,
        sizes: vec![1; 5],
        strides: vec![0; 4],
        boxes: vec![1; 5],
        steps: vec![1; 5],
        element: Element::U8,
        swizzle: 0,
        promotion: 0,
        ..map()
    };
    // Without the bits of its rank.
    let clear = "tensormap.replace.tile.rankSPACE.b1024.b32 [%at], 0;";
    let before = changed(&empty, "global", clear);
    for (change, place, bits) in places {
        let change = format!("{clear}\ntensormap.replace.tile.{change};");
        let after = changed(&empty, "global", &change);
        for (n, (old, new)) in before.iter().zip(&after).enumerate() {
            let expected = if n == place / 8 {
                bits << (place % 8 * 8)
            } else {
                0
            };
            assert_eq!(old ^ new, expected, "{change} {n}");
        }
    }
}

#[test]
fn a_map_that_breaks_a_limit_after_its_change_says_which() {
    let cases = [
        ("global_addressSPACE.b1024.b64 [%at], 8", "multiple of 16"),
        ("rankSPACE.b1024.b32 [%at], 5", "1 to 5 are possible"),
        (
            "box_dimSPACE.b1024.b32 [%at], 0, 65",
            "not a multiple of 16",
        ),
        (
            "box_dimSPACE.b1024.b32 [%at], 0, 128",
            "a swizzle of 128 bytes",
        ),
        ("elemtypeSPACE.b1024.b32 [%at], 9", "a swizzle of 128 bytes"),
        (
            "interleave_layoutSPACE.b1024.b32 [%at], 2",
            "an interleave of 32",
        ),
    ];
    for (change, said) in cases {
        let change = format!("tensormap.replace.tile.{change};");
        let found = decoded(&changed(&map(), "shared::cta", &change)).unwrap_err();
        assert!(found.contains(said), "{change}: {found}");
    }
}

#[test]
fn a_guarded_change_is_one_of_some_threads_only() {
    for (guard, address) in [("@%p", 0x7000_0012_3450), ("@!%p", 16)] {
        let change = format!(
            "setp.eq.u64 %p, %out, 0;\n\
             {guard} tensormap.replace.tile.global_addressSPACE.b1024.b64 [%at], 16;"
        );
        let found = decoded(&changed(&map(), "global", &change)).unwrap();
        assert_eq!(found.address, address);
    }
}

#[test]
fn a_warp_copies_a_map_from_shared_to_global_memory() {
    let copied = copy("", "%in", ".shared", "%at");
    let text = format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 out, .param .u64 in) {{\n\
         .shared .align 128 .b8 box[256];\n.reg .b32 %a, %t; .reg .b64 %at, %out, %in, %w; .reg .pred %p;\n\
         ld.param.u64 %out, [out]; ld.param.u64 %in, [in]; mov.u32 %a, box; add.u32 %a, %a, 128;\n\
         cvt.u64.u32 %at, %a; mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0;\n@%p bra L;\n{copied}\nL:\n\
         bar.warp.sync 0xffffffff;\n\
         tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%out], [box+128], 128;\n\
         ret;\n}}\n"
    );
    let module = Module::load(&text).unwrap();
    let found = launch_words(&module, "k", 1, 32, &words(&map()), WORDS, "a copy");
    assert_eq!(decoded(&found), Ok(map()));
}

#[test]
fn forms_that_are_not_supported_are_named() {
    for field in [
        "elemtype.global.b1024.b32 [%at], 16",
        "swizzle_mode.global.b1024.b32 [%at], 4",
    ] {
        let text = format!(
            ".version 8.8\n.target sm_103a\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
             .reg .b64 %at;\nld.param.u64 %at, [out];\ntensormap.replace.tile.{field};\nret;\n}}\n"
        );
        let module = Module::load(&text).unwrap();
        let why = module.supported("k").unwrap_err().to_string();
        assert!(why.contains("tensormap.replace.tile"), "{why}");
    }
}
