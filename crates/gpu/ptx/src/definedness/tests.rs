use super::*;
use crate::parse;

/// Returns the numbers of the watched `%r` registers and the indices of the watched instructions of
/// a kernel body.
fn watched(body: &str) -> (Vec<u32>, Vec<usize>) {
    let text = format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .b32 %r<8>;\n.reg .pred %p<4>;\n.reg .b64 %rd<4>;\nmov.u64 %rd1, 0;\n{body}\nret;\n}}\n"
    );
    let ast = parse(&text).expect("valid PTX");
    let body = ast.functions[0].body.as_ref().expect("a body");
    let deferred = crate::structs::unwritten(body).into_iter();
    let deferred = deferred.filter(|(_, may)| *may == crate::structs::Unwritten::Deferred);
    let found = find_undefined(body, deferred.map(|(at, _)| at).collect());
    let mut registers: Vec<u32> = found.registers.keys().map(|reg| reg.0).collect();
    let mut instructions: Vec<usize> = found.instructions.into_iter().collect();
    registers.sort_unstable();
    instructions.sort_unstable();
    (registers, instructions)
}

#[test]
fn code_that_writes_before_it_reads_is_not_watched() {
    let (registers, instructions) =
        watched("mov.u32 %r1, 1;\nadd.s32 %r2, %r1, 1;\nst.global.u32 [%rd1], %r2;");
    assert_eq!((registers, instructions), (vec![], vec![]));
}

#[test]
fn a_value_computed_from_an_unwritten_register_is_watched_to_its_use() {
    let (registers, instructions) =
        watched("add.s32 %r2, %r1, 1;\nadd.s32 %r3, %r2, 1;\nst.global.u32 [%rd1], %r3;");
    assert_eq!(registers, [1, 2, 3]);
    assert_eq!(instructions, [1, 2, 3]);
}

#[test]
fn a_definition_on_one_of_two_paths_is_partial() {
    let (registers, _) = watched(
        "mov.u32 %r2, %tid.x;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra L;\nmov.u32 %r1, 1;\n\
         L:\nst.global.u32 [%rd1], %r1;",
    );
    assert_eq!(registers, [1]);
    let (registers, _) = watched(
        "mov.u32 %r2, %tid.x;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 mov.u32 %r1, 1;\n\
         st.global.u32 [%rd1], %r1;",
    );
    assert_eq!(registers, [1]);
}

#[test]
fn a_loop_carried_register_is_undefined_in_the_first_iteration_only() {
    let (registers, _) = watched(
        "mov.u32 %r2, 0;\nL:\nst.global.u32 [%rd1], %r1;\nmov.u32 %r1, 1;\n\
         add.s32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 4;\n@%p1 bra L;",
    );
    assert_eq!(registers, [1]);
}

#[test]
fn a_carry_flag_that_no_instruction_set_is_watched() {
    let (registers, instructions) =
        watched("mov.u32 %r1, 1;\naddc.u32 %r2, %r1, 0;\nst.global.u32 [%rd1], %r2;");
    // Behind the 17 registers of the function, of which 0 to 7 are `%r`.
    assert!(
        registers.contains(&2) && registers.len() == 2,
        "{registers:?}"
    );
    assert_eq!(instructions, [2, 3]);
    let set = "mov.u32 %r1, 1;\nadd.cc.u32 %r3, %r1, 1;\naddc.cc.u32 %r2, %r1, 0;\n\
               addc.u32 %r4, %r2, %r3;\nst.global.u32 [%rd1], %r4;";
    assert_eq!(watched(set), (vec![], vec![]));
    let (registers, _) = watched(
        "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 add.cc.u32 %r3, %r1, 1;\n\
         addc.u32 %r2, %r1, 0;\nst.global.u32 [%rd1], %r2;",
    );
    assert!(registers.contains(&2), "{registers:?}");
}

#[test]
fn a_load_defines_its_destination_whatever_its_address() {
    let (registers, instructions) =
        watched("ld.global.u32 %r1, [%rd2];\nst.global.u32 [%rd1], %r1;");
    assert_eq!(registers.len(), 1, "only the address: {registers:?}");
    assert_eq!(instructions, [1]);
}

#[test]
fn a_value_that_was_stored_to_shared_memory_comes_back_by_a_load() {
    let body = "st.shared.u32 [%r2], %r1;\nld.shared.u32 %r3, [%r2];\nadd.s32 %r4, %r3, 1;";
    let (registers, instructions) = watched(&format!("mov.u32 %r2, 0;\n{body}"));
    assert_eq!(registers, [1, 3]);
    assert_eq!(instructions, [2, 3, 4]);
    let (registers, _) =
        watched(&format!("mov.u32 %r2, 0;\n{body}").replace("[%r2], %r1", "[%r2], 7"));
    assert_eq!(registers, []);
}

#[test]
fn a_value_that_a_predicate_may_discard_is_watched_from_its_load() {
    let (registers, instructions) = watched(
        "ld.shared.u32 %r1, [%rd1];\nmov.u32 %r2, 1;\nsetp.eq.u32 %p1, %r2, 0;\n\
         setp.eq.u32 %p2, %r1, 0;\nand.pred %p3, %p1, %p2;\n@%p3 st.global.u32 [%rd1], %r2;",
    );
    assert_eq!(registers[0], 1);
    // The load, the comparison, the logic and the guard.
    assert_eq!(instructions, [1, 4, 5, 6]);
}
