use super::*;
use crate::parse;

/// Used bits of `%rd1` (or `%r1`), which the code loads.
fn bits(code: &str) -> u64 {
    let text = format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{{\n\
         .reg .b16 %h<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n{code}\nret;\n}}\n"
    );
    let ast = parse(&text).expect("valid PTX");
    let body = ast.functions[0].body.as_ref().expect("a body");
    let load = body.instructions.iter().find(|i| i.opcode == "ld");
    let Some(Operand::Reg(loaded)) = load.and_then(|i| i.operands.first()) else {
        panic!("no load");
    };
    UsedBits::find(body).register_bits(*loaded)
}

/// Used bits of a loaded double word of which `%h1` is stored after the code.
fn stored(code: &str) -> u64 {
    bits(&format!(
        "ld.global.b64 %rd1, [%rd8];\n{code}\nst.global.u16 [%rd8], %h1;"
    ))
}

#[test]
fn a_narrow_store_and_a_mask_use_the_bits_that_remain() {
    assert_eq!(stored("cvt.u16.u64 %h1, %rd1;"), 0xffff);
    assert_eq!(
        stored("cvt.u16.u64 %h2, %rd1;\nand.b16 %h1, %h2, 255;"),
        0xff
    );
    assert_eq!(
        stored("or.b64 %rd2, %rd1, 240;\ncvt.u16.u64 %h1, %rd2;"),
        0xff0f
    );
    let whole = "setp.eq.s64 %p1, %rd1, 0;\ncvt.u16.u64 %h1, %rd1;";
    assert_eq!(stored(whole), u64::MAX);
    assert_eq!(stored("@%p1 bra L;\nL:\ncvt.u16.u64 %h1, %rd1;"), 0xffff);
}

#[test]
fn shifts_and_fields_move_the_bits() {
    assert_eq!(
        stored("shr.u64 %rd2, %rd1, 40;\ncvt.u16.u64 %h1, %rd2;"),
        0xffff << 40
    );
    assert_eq!(
        stored("shl.b64 %rd2, %rd1, 8;\ncvt.u16.u64 %h1, %rd2;"),
        0xff
    );
    assert_eq!(
        stored("bfe.u64 %rd2, %rd1, 32, 8;\ncvt.u16.u64 %h1, %rd2;"),
        0xff << 32
    );
    let sign = 1 << 63;
    assert_eq!(
        stored("shr.s64 %rd2, %rd1, 8;\ncvt.u16.u64 %h1, %rd2;"),
        0xffff << 8 | sign
    );
    let halves = "mov.b64 {%r1, %r2}, %rd1;\ncvt.u16.u32 %h1, %r2;";
    assert_eq!(stored(halves), 0xffff << 32);
    let joined = "cvt.u32.u64 %r1, %rd1;\nprmt.b32 %r2, %r1, %r3, 30258;\ncvt.u16.u32 %h1, %r2;";
    // The selector 0x7632: bytes 2 and 3 of the first register are the lower half.
    assert_eq!(stored(joined), 0xffff_0000);
}

#[test]
fn sums_use_the_bits_below_and_selections_those_of_the_result() {
    assert_eq!(
        stored("add.s64 %rd2, %rd1, 7;\ncvt.u16.u64 %h1, %rd2;"),
        0xffff
    );
    let high = "add.s64 %rd2, %rd1, 7;\nshr.u64 %rd3, %rd2, 16;\ncvt.u16.u64 %h1, %rd3;";
    assert_eq!(stored(high), 0xffff_ffff);
    // A loop that carries a value, as a reduction of structs.
    let carried = "L:\nselp.b64 %rd2, %rd1, %rd2, %p1;\n@%p2 bra L;\ncvt.u16.u64 %h1, %rd2;";
    assert_eq!(stored(carried), 0xffff);
    assert_eq!(
        stored("mad.lo.s64 %rd2, %rd3, %rd4, %rd1;\ncvt.u16.u64 %h1, %rd2;"),
        0xffff
    );
    assert_eq!(
        stored("mul.hi.s64 %rd2, %rd1, %rd4;\ncvt.u16.u64 %h1, %rd2;"),
        u64::MAX
    );
}

#[test]
fn an_extension_uses_the_sign_of_its_source() {
    let extended = "cvt.s64.s16 %rd2, %h2;\nshr.u64 %rd3, %rd2, 32;\nst.global.u32 [%rd8], %rd3;";
    assert_eq!(
        stored(&format!("cvt.u16.u64 %h2, %rd1;\n{extended}")),
        1 << 15
    );
    let zero = extended.replace("cvt.s64.s16", "cvt.u64.u16");
    assert_eq!(stored(&format!("cvt.u16.u64 %h2, %rd1;\n{zero}")), 0);
}

#[test]
fn bytes_are_used_with_any_of_their_bits() {
    let used = |bits| UsedBits(vec![bits]);
    assert_eq!(used(0x100).bytes_of(Reg(0), 8, false), 0b10);
    assert_eq!(used(0xff).bytes_of(Reg(0), 4, false), 0b1);
    assert_eq!(used(0xff00_0000).bytes_of(Reg(0), 1, true), 0b1);
    assert_eq!(used(0).bytes_of(Reg(0), 4, false), 0b1111);
    assert_eq!(used(1).bytes_of(Reg(9), 2, false), 0b11);
}
