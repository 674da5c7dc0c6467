use super::{kernels, shortened};

const PTX: &str = "\
.version 9.0
.visible .entry k(
	.param .u64 k_param_0
)
{
	.loc	2 4 0
	mov.u64 %rd1, 0;
	.loc	2 9 4
}
.weak .entry _Z1fv()
{
	ret;
}
	.file	1 \"parameters\"
	.file	2 \"templates/a/kernel.cu\"
";

#[test]
fn kernels_are_read_with_the_line_of_their_name() {
    let found = kernels(&shortened(PTX));
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].name, "k");
    let place = ("templates/a/kernel.cu".to_owned(), 4);
    assert_eq!(found[0].place, Some(place));
    assert_eq!((&*found[1].name, &found[1].place), ("_Z1fv", &None));
    assert_eq!(shortened(&shortened(PTX)), shortened(PTX));
}
