//! `alloca`, `stacksave` and `stackrestore`.

use vgpu::{Arch, Arg, GlobalMemory, HazardKind, Launch, Module, launch};

/// Runs a block of 32 threads over `%q8`, an array of 32 words; returns the array and the kinds of hazards.
fn run(functions: &str, body: &str) -> (Vec<u32>, Vec<HazardKind>) {
    let text = format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n{functions}\n\
         .visible .entry k(.param .u64 out) {{\n\
         .reg .b32 %r<16>; .reg .b64 %q<24>; .reg .pred %p<8>;\n\
         mov.u32 %r8, %tid.x; ld.param.u64 %q8, [out]; mul.wide.u32 %q9, %r8, 4; add.s64 %q8, %q8, %q9;\n\
         {body}\nret;\n}}\n"
    );
    let module = Module::load(&text).unwrap_or_else(|e| panic!("{body}: {e}"));
    let mut memory = GlobalMemory::new(1 << 20);
    let out = memory.alloc(128, "out").unwrap();
    memory.write(out, 0, &[0; 128]);
    let mut spec = Launch::new("k", [1; 3], [32, 1, 1], vec![Arg::Buffer(out)]);
    spec.threads = 1;
    spec.stack_bytes = 1024;
    let arch = Arch::by_name("h100").unwrap();
    let report =
        launch(&module, &mut memory, arch, &spec).unwrap_or_else(|e| panic!("{body}: {e}"));
    let bytes = memory.read(out);
    let words = bytes.as_chunks::<4>().0.iter();
    let hazards = report.hazards.iter().map(|hazard| hazard.kind);
    (
        words.map(|w| u32::from_le_bytes(*w)).collect(),
        hazards.collect(),
    )
}

/// Allocates 4 bytes for each number up to that of the thread, stores the numbers there, and adds them.
const SUM: &str = "add.u32 %r9, %r8, 1; mul.wide.u32 %q1, %r9, 4; alloca.u64 %q2, %q1, 16;\n\
    mov.u32 %r1, 0; mov.u64 %q3, %q2;\n\
    fill: st.local.u32 [%q3], %r1; add.s64 %q3, %q3, 4; add.u32 %r1, %r1, 1;\n\
    setp.lt.u32 %p1, %r1, %r9; @%p1 bra fill;\n\
    mov.u32 %r2, 0; cvta.local.u64 %q4, %q2;\n\
    sum: sub.u32 %r1, %r1, 1; mul.wide.u32 %q5, %r1, 4; add.s64 %q5, %q4, %q5; ld.u32 %r3, [%q5];\n\
    add.u32 %r2, %r2, %r3; setp.ne.u32 %p1, %r1, 0; @%p1 bra sum;\n\
    st.global.u32 [%q8], %r2;";

#[test]
fn each_thread_has_as_many_bytes_as_it_asks_for() {
    let (sums, hazards) = run("", SUM);
    let expected: Vec<u32> = (0..32).map(|n| n * (n + 1) / 2).collect();
    assert_eq!((sums, hazards), (expected, Vec::new()));
}

#[test]
fn an_access_behind_the_end_is_out_of_bounds() {
    let (_, hazards) = run("", &SUM.replace("setp.lt.u32", "setp.le.u32"));
    assert!(!hazards.is_empty() && hazards.iter().all(|kind| *kind == HazardKind::OutOfBounds));
}

#[test]
fn memory_is_unwritten_again_after_it_was_freed() {
    let body = "stacksave.u64 %q1; alloca.u64 %q2, 16; st.local.u32 [%q2+8], %r8; STORE\n\
         stackrestore.u64 %q1; alloca.u64 %q3, 16; LOAD st.global.u32 [%q8], %r1;";
    let with = |store: &str, load: &str| {
        let body = body.replace("STORE", store).replace("LOAD", load);
        run("", &body).1
    };
    let write = "st.local.u32 [%q3+8], 5; ld.local.u32 %r1, [%q3+8];";
    assert_eq!(with("", write), []);
    let read = "ld.local.u32 %r1, [%q3+8];";
    assert_eq!(with("", read), [HazardKind::Uninitialized]);
    // The second allocation is where the first was.
    let old = "alloca.u64 %q4, 64; st.local.u32 [%q4+60], 1;";
    let freed = "ld.local.u32 %r1, [%q4+60];";
    assert_eq!(with(old, freed), [HazardKind::OutOfBounds]);
}

#[test]
fn a_function_frees_what_it_allocated() {
    let function = ".func (.param .b32 r) f(.param .b32 n) {\n\
         .reg .b32 %r<4>; .reg .b64 %q<4>; ld.param.u32 %r1, [n];\n\
         alloca.u64 %q1, 512; st.local.u32 [%q1+508], %r1; ld.local.u32 %r2, [%q1+508];\n\
         st.param.b32 [r], %r2; ret;\n}";
    let call = "{ .param .b32 n; .param .b32 r; st.param.b32 [n], %r8; call (r), f, (n);\n\
         ld.param.b32 %r1, [r]; st.global.u32 [%q8], %r1; }";
    // Each call takes half of the stack.
    let (numbers, hazards) = run(function, &call.repeat(4));
    assert_eq!((numbers, hazards), ((0..32).collect(), Vec::new()));
    let kept = format!("alloca.u64 %q1, 256; alloca.u64 %q2, 300; {call}");
    assert_eq!(run(function, &kept).1, [HazardKind::Crashed]);
}

#[test]
fn the_stack_pointer_is_restored_to_saved_values_only() {
    let (_, hazards) = run(
        "",
        "stacksave.u64 %q1; add.s64 %q1, %q1, 64; stackrestore.u64 %q1;",
    );
    assert_eq!(hazards, [HazardKind::Crashed]);
}
