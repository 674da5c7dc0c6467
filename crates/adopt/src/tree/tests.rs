use super::{Source, declared};
use std::path::Path;

fn names(text: &str) -> Vec<Vec<String>> {
    let source = Source::parse(Path::new("t.cu"), "t.cu".into(), text.to_owned()).unwrap();
    let root = source.tree().root_node();
    let mut cursor = root.walk();
    root.named_children(&mut cursor)
        .map(|node| declared(&source, node))
        .collect()
}

#[test]
fn declarations_are_found_by_their_names() {
    let text = "template <int A> __device__ float* f(int x) { return 0; }\n\
                constexpr int BM = 3, *p = 0;\nstruct S { int a; };\nenum E { ONE, TWO };\n\
                using T = float;\ntypedef struct { int x; } V;\nnamespace cg = cooperative_groups;\n\
                __constant__ float c[4];\nvoid S::go() {}\n";
    let found = names(text);
    let has = |name: &str| found.iter().any(|all| all.iter().any(|each| each == name));
    for name in [
        "f", "BM", "p", "S", "E", "ONE", "TWO", "T", "V", "cg", "c", "go",
    ] {
        assert!(has(name), "{name}: {found:?}");
    }
}

#[test]
fn keywords_of_gnu_are_those_of_the_standard() {
    let text = "static __device__ __const__ unsigned char mask = 15;\n\
                __device__ __signed__ char level;\nfloat __const_of(int x) { return 0; }\n";
    let found = names(text).concat();
    assert!(found.contains(&"mask".to_owned()), "{found:?}");
    assert!(found.contains(&"level".to_owned()), "{found:?}");
    assert!(found.contains(&"__const_of".to_owned()), "{found:?}");
}

#[test]
fn structures_with_an_alignment_of_cuda_are_found_by_their_names() {
    let text = "struct __align__(16) A { float x; };\nclass __builtin_align__(8) B { public: int y; };\n\
                typedef struct __align__(16) { float x; } C;\ntypedef union __align__ (4) D_ { int i; } D;\n\
                __device__ __align__(16) float table[4];\nstruct alignas(8) E final { int z; };\n";
    let found = names(text).concat();
    for name in ["A", "B", "C", "D", "table", "E"] {
        assert!(found.contains(&name.to_owned()), "{name}: {found:?}");
    }
}

#[test]
fn what_a_tree_leaves_out_is_no_part_of_the_items_around_it() {
    let text = "int a;\nDEFINE(x,\n y)\nint b;\n";
    let mut source = Source::parse(Path::new("a.cu"), "a.cu".to_owned(), text.to_owned()).unwrap();
    source.leave_out(std::iter::once(7..20));
    assert_eq!(source.own_text(&(0..27)), "int a;\n         \n   \nint b;");
    // A part of it is the text itself.
    assert_eq!(source.own_text(&(7..16)), "DEFINE(x,");
    assert_eq!(source.text(&(7..20)), "DEFINE(x,\n y)");
}
