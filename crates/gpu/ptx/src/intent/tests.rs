use super::*;
use crate::parse;

fn relaxed(body: &str) -> (Vec<usize>, bool) {
    let text = format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .pred %p<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n{body}\nret;\n}}\n"
    );
    let ast = parse(&text).expect("valid PTX");
    let (set, polling) = relaxed_loads(ast.functions[0].body.as_ref().expect("a body"));
    let mut list: Vec<_> = set.into_iter().collect();
    list.sort_unstable();
    (list, polling)
}

#[test]
fn a_volatile_load_that_ends_its_loop_polls() {
    let spin = "L: ld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.s32 %p1, %r1, 0;\n@%p1 bra L;";
    assert_eq!(relaxed(spin), (vec![0], true));
}

#[test]
fn the_first_trip_before_the_loop_polls_too() {
    let spin = "ld.volatile.global.u32 %r1, [%rd1];\nsetp.ne.s32 %p1, %r1, 0;\n@%p1 bra E;\n\
            L: ld.volatile.global.u32 %r2, [%rd1];\nsetp.eq.s32 %p2, %r2, 0;\n@%p2 bra L;\nE:";
    assert_eq!(relaxed(spin), (vec![0, 3], true));
}

#[test]
fn a_volatile_load_that_only_feeds_sums_is_data() {
    let sum = "L: ld.volatile.shared.u32 %r1, [%r4];\nadd.s32 %r2, %r2, %r1;\n\
            add.s32 %r3, %r3, 1;\nsetp.ne.s32 %p1, %r3, 8;\n@%p1 bra L;";
    assert_eq!(relaxed(sum), (vec![], false));
}

#[test]
fn the_seed_of_a_compare_and_swap_loop_is_found() {
    let swap = "ld.global.u32 %r1, [%rd1];\nL: add.s32 %r2, %r1, 1;\n\
            atom.global.cas.b32 %r3, [%rd1], %r1, %r2;\nsetp.ne.s32 %p1, %r1, %r3;\n\
            mov.u32 %r1, %r3;\n@%p1 bra L;";
    assert_eq!(relaxed(swap), (vec![0], false));
}

#[test]
fn a_load_of_another_word_is_no_seed() {
    let swap = "ld.global.u32 %r1, [%rd1+4];\natom.global.cas.b32 %r3, [%rd1], %r1, %r2;";
    assert_eq!(relaxed(swap), (vec![], false));
}
