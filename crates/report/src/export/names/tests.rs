use super::*;

#[test]
fn targets_are_kernel_tuners() {
    assert_eq!(target("NVIDIA A100-SXM4-40GB"), "NVIDIA_A100_SXM4_40GB");
    assert_eq!(target(" vgpu:h100 "), "vgpu_h100");
}

#[test]
fn members_never_meet_a_macro_or_a_keyword() {
    assert_eq!(
        members(&["TILE", "tile", "INT", "block_size_x", "N"], &["n"]),
        ["tile_", "tile__", "int_", "block_size_x_", "n_"]
    );
}

#[test]
fn strings_and_comments_stay_closed() {
    assert_eq!(string("a\"b\\c?é\n"), "\"a\\\"b\\\\c\\?\\303\\251\\012\"");
    assert_eq!(comment("x */ y /* z\n"), "x * / y / * z ");
}
