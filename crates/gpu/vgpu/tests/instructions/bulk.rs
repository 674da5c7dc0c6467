//! Bulk copies of some bytes, and stores that release.

use vgpu::{Arch, Arg, GlobalMemory, HazardKind, Launch, Module, TensorElement, TensorMap, launch};

/// Runs kernels of 32 threads over 128 bytes that are 0xff; returns them and the kinds of hazards.
fn run(blocks: u32, body: &str) -> (Vec<u8>, Vec<HazardKind>) {
    let text = format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.shared .align 16 .b8 box[64];\n\
         .global .align 4 .u32 flag = 0;\n\
         .visible .entry k(.param .u64 out) {{\n\
         .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %q<8>; .reg .pred %p<4>;\n\
         mov.u32 %r8, %tid.x; ld.param.u64 %q8, [out]; mov.u32 %r9, box;\n{body}\nret;\n}}\n"
    );
    let text = text.replace("%q8", "%q1");
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{body}: {e}"));
    let mut memory = GlobalMemory::new(1 << 20);
    let out = memory.alloc(128, "out").unwrap();
    memory.write(out, 0, &[0xff; 128]);
    let mut spec = Launch::new("k", [blocks, 1, 1], [32, 1, 1], vec![Arg::Buffer(out)]);
    spec.threads = 1;
    let arch = Arch::by_name("b200").unwrap();
    let report =
        launch(&module, &mut memory, arch, &spec).unwrap_or_else(|e| panic!("{body}: {e}"));
    let hazards = report.hazards.iter().map(|hazard| hazard.kind);
    (memory.read(out).to_vec(), hazards.collect())
}

/// Copies 48 bytes of which a mask selects those of each 16; the first `written` threads write one byte each.
fn masked(mask: u32, written: u32) -> (Vec<u8>, Vec<HazardKind>) {
    let body = format!(
        "setp.ge.u32 %p1, %r8, {written}; @%p1 bra filled; add.u32 %r10, %r9, %r8; st.shared.u8 [%r10], %r8;\n\
         st.shared.u8 [%r10+32], %r8; filled:\n\
         fence.proxy.async; bar.sync 0; setp.ne.u32 %p2, %r8, 0; @%p2 ret;\n\
         mov.b16 %h1, {mask};\n\
         cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%q8], [%r9], 48, %h1;\n\
         cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    );
    run(1, &body)
}

#[test]
fn a_mask_selects_the_bytes_of_a_bulk_copy() {
    for mask in [0xffff, 0x0ff0, 0x8421, 1, 0] {
        let (bytes, hazards) = masked(mask, 32);
        assert!(hazards.is_empty(), "{mask:x}");
        for (n, byte) in (0_u8..).zip(bytes) {
            let copied = n < 48 && mask >> (n % 16) & 1 == 1;
            let want = if copied { n % 32 } else { 0xff };
            assert_eq!(byte, want, "{mask:x} {n}");
        }
    }
}

#[test]
fn bytes_that_a_bulk_copy_leaves_out_are_not_read() {
    // Sixteen threads leave the bytes from 16 to 31 unwritten.
    assert_eq!(masked(0, 16).1, []);
    assert_eq!(masked(1, 16).1, [HazardKind::Uninitialized]);
    // Eight write the lower half of each 16 but the second.
    let half = masked(0x00ff, 24);
    assert_eq!(half.1, []);
    assert_eq!(masked(0xff00, 24).1, [HazardKind::Uninitialized]);
}

#[test]
fn an_asynchronous_store_to_global_memory_releases() {
    let body = |store: &str| {
        format!(
            "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p3, %r8, 0; @%p3 ret; setp.ne.u32 %p1, %r1, 0; @%p1 bra reader;\n\
             st.global.u32 [%q8], 7; mov.u64 %q3, flag; {store}; ret;\n\
             reader: mov.u64 %q3, flag;\n\
             poll: ld.acquire.gpu.global.u32 %r2, [%q3]; setp.eq.u32 %p2, %r2, 0; @%p2 bra poll;\n\
             ld.global.u32 %r3, [%q8]; st.global.u32 [%q8+64], %r3;"
        )
    };
    for store in [
        "st.async.release.gpu.global.u32 [%q3], 1",
        "red.async.release.gpu.global.add.u32 [%q3], 1",
    ] {
        let (bytes, hazards) = run(2, &body(store));
        assert_eq!((bytes[64], hazards), (7, Vec::new()), "{store}");
    }
    let (_, hazards) = run(2, &body("st.relaxed.gpu.global.u32 [%q3], 1"));
    assert_eq!(hazards, [HazardKind::Race]);
}

/// Runs one thread with a tensor map of 8 rows of 64 bytes at `%q1`, 512 bytes of shared memory at `%r9`, and an `mbarrier` at
/// `%r10`; returns the kinds of hazards.
fn with_map(body: &str) -> Vec<HazardKind> {
    let text = format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.shared .align 128 .b8 box[512]; .shared .align 8 .b64 bar;\n\
         .visible .entry k(.param .u64 map) {{\n\
         .reg .b32 %r<16>; .reg .b64 %q<8>; .reg .pred %p<4>;\n\
         ld.param.u64 %q1, [map]; mov.u32 %r9, box; mov.u32 %r10, bar;\n\
         mbarrier.init.shared::cta.b64 [%r10], 1; cvt.u64.u32 %q2, %r9; st.bulk.shared::cta [%q2], 512, 0;\n\
         fence.proxy.async;\n{body}\nret;\n}}\n"
    );
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{body}: {e}"));
    let mut memory = GlobalMemory::new(1 << 20);
    let tensor = memory.alloc(512, "tensor").unwrap();
    memory.write(tensor, 0, &[1; 512]);
    let map = TensorMap {
        element: TensorElement::U8,
        address: memory.address(tensor),
        sizes: vec![64, 8],
        strides: vec![64],
        boxes: vec![64, 8],
        steps: vec![1, 1],
        interleave: 0,
        swizzle: 0,
        promotion: 0,
        fills_nan: false,
        pixels: None,
    };
    let place = memory.alloc(128, "map").unwrap();
    memory.write(place, 0, &map.encode());
    let mut spec = Launch::new("k", [1; 3], [1; 3], vec![Arg::Buffer(place)]);
    spec.threads = 1;
    let arch = Arch::by_name("b200").unwrap();
    let report =
        launch(&module, &mut memory, arch, &spec).unwrap_or_else(|e| panic!("{body}: {e}"));
    report.hazards.iter().map(|hazard| hazard.kind).collect()
}

#[test]
fn a_tensor_map_is_read_until_its_copy_is_complete() {
    let change = "tensormap.replace.tile.global_dim.global.b1024.b32 [%q1], 1, 4;";
    let load = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 512;\n\
        cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r9], [%q1, {0, 0}], [%r10];";
    let loaded = "wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r10], 0; @!%p1 bra wait;";
    let store = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%q1, {0, 0}], [%r9]; cp.async.bulk.commit_group;";
    let stored = "cp.async.bulk.wait_group.read 0;";
    for (copy, wait) in [(load, loaded), (store, stored)] {
        assert_eq!(with_map(&format!("{copy}\n{wait}\n{change}")), [], "{copy}");
        assert_eq!(
            with_map(&format!("{copy}\n{change}\n{wait}")),
            [HazardKind::Race],
            "{copy}"
        );
    }
}
