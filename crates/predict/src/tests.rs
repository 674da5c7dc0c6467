use super::*;

#[test]
fn fewer_registers_let_more_blocks_reside_until_another_limit_holds() {
    let arch = Arch::by_name("l4").unwrap();
    assert_eq!(resident_blocks(arch, 256, 255, 0), 1);
    assert_eq!(resident_blocks(arch, 256, 128, 0), 2);
    assert_eq!(resident_blocks(arch, 256, 32, 0), 6);
    assert_eq!(resident_blocks(arch, 256, 32, 50_000), 2);
    assert_eq!(resident_blocks(arch, 1024, 255, 0), 0);
}
