use super::{bytes_of, describe, number};
use crate::unit::Unit;
use tuner_core::plan::Role;

#[test]
fn types_are_named_as_search_spaces_name_them() {
    for (ty, name) in [
        ("float const*", "f32"),
        ("const float* __restrict__", "f32"),
        ("__half*", "f16"),
        ("unsigned long long", "u64"),
        ("unsigned short*", "u16"),
        ("bool*", "bool"),
        ("float4 const*", "float4"),
        ("void const*", "u8"),
        ("float [16]", "f32"),
        ("float (*) [3]", "f32"),
    ] {
        assert_eq!(number(ty).map(|it| it.yaml).as_deref(), Some(name), "{ty}");
    }
    for ty in ["float**", "Params", "cudaTextureObject_t3", "float&"] {
        assert!(number(ty).is_none(), "{ty}");
    }
}

#[test]
fn numbers_and_vectors_have_the_bytes_and_lanes_of_the_declared_type() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.cu");
    std::fs::write(&file, "__global__ void k() {}\n").unwrap();
    let unit = Unit::read(&file, &[]).unwrap();
    for (ty, bytes, lanes) in [
        ("float", 4, 1),
        ("int", 4, 1),
        ("unsigned long", 8, 1),
        ("half2", 4, 2),
        ("__half2", 4, 2),
        ("nv_bfloat162", 4, 2),
        ("__nv_bfloat162", 4, 2),
        ("__nv_fp8_e4m3", 1, 1),
        ("__nv_fp8_e5m2", 1, 1),
        ("float4", 16, 4),
        ("double1", 8, 1),
        ("int2", 8, 2),
        ("uchar3", 3, 3),
        ("ulonglong2", 16, 2),
        ("dim3", 12, 3),
    ] {
        let described = describe(&unit, ty, Role::Scalar, false).unwrap();
        let values = described
            .value
            .as_ref()
            .map_or(1, |it| it.matches('1').count());
        assert_eq!((described.bytes, values), (bytes, lanes), "{ty}");
        assert_eq!(bytes_of(ty), Some(bytes), "{ty}");
        assert_eq!(bytes_of(&format!("{ty}*")), None, "{ty}");
    }
}

#[test]
fn structs_have_the_bytes_that_the_compiler_gives_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.cu");
    let text = "struct A { float x; float3 at; };\nstruct B { double d; char c; };\n\
        struct C { char c; float4 v; int n[3]; };\nstruct D { char c; int* to; bool b; };\n\
        __global__ void k() {}\n";
    std::fs::write(&file, text).unwrap();
    let unit = Unit::read(&file, &[]).unwrap();
    for (ty, bytes) in [("A", 16), ("B", 16), ("C", 48), ("D", 24)] {
        let described = describe(&unit, ty, Role::Scalar, false).unwrap();
        assert_eq!(described.bytes, bytes, "{ty}");
    }
}

#[test]
fn structs_are_described_by_their_fields() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.cu");
    let text = "#define REAL float\ntypedef REAL real;\nconstexpr int K = 3;\n\
        struct Body { float3 at; real mass; unsigned char kind[K + 1]; float norm() const; };\n\
        typedef struct { int n; const double *in; bool fast; } Params;\n\
        struct Bits { int a : 3; };\n__global__ void k(Params p) {}\n";
    std::fs::write(&file, text).unwrap();
    let unit = Unit::read(&file, &[]).unwrap();
    let of = |ty: &str, role| describe(&unit, ty, role, false);
    let body = of("Body const*", Role::Input).unwrap();
    assert_eq!(body.yaml, "{ at: float3, mass: f32, kind: \"u8[4]\" }");
    let params = of("Params", Role::Scalar).unwrap();
    assert_eq!(params.yaml, "{ n: i32, in: pointer, fast: bool }");
    assert_eq!(
        params.value.as_deref(),
        Some("{ n: $_n, in: $_in, fast: 1 }")
    );
    assert_eq!(params.pointers, [("in".to_owned(), "f64".to_owned(), 8)]);
    for (ty, why) in [
        ("Params*", "pointers"),
        ("Bits", "bit fields"),
        ("Other", "do not define"),
        ("Vec<float>", "template"),
    ] {
        let refused = of(ty, Role::Input).unwrap_err();
        assert!(refused.why.contains(why), "{ty}: {}", refused.why);
    }
}

#[test]
fn structs_that_point_to_each_other_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.cu");
    let text = "struct Node { int key; Node *next; };\nstruct B;\nstruct A { B *b; };\n\
                struct B { A *a; };\n__global__ void k(Node *list, A *a) {}\n";
    std::fs::write(&file, text).unwrap();
    let unit = Unit::read(&file, &[]).unwrap();
    for (ty, field) in [("Node", "next"), ("A", "b"), ("B", "a")] {
        let refusal = describe(&unit, ty, Role::Input, false).unwrap_err();
        let wanted = format!("its field `{field}` points to a struct");
        assert!(refusal.why.contains(&wanted), "{}", refusal.why);
    }
}

#[test]
fn the_alignment_that_a_structure_states_is_filled_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.cu");
    let text = "constexpr int WIDE = 32;\nstruct __align__(16) A { float x, y, z; };\n\
                struct __align__(16) B { float3 a; float b; };\nstruct alignas(WIDE) C { double d; char e; };\n\
                typedef struct __attribute__((aligned(8))) { int i; } D;\nstruct __align__(4) E { double d; };\n\
                __global__ void k() {}\n";
    std::fs::write(&file, text).unwrap();
    let unit = Unit::read(&file, &[]).unwrap();
    for (ty, bytes, yaml) in [
        ("A", 16, "{ x: f32, y: f32, z: f32, _padding: \"u8[4]\" }"),
        ("B", 16, "{ a: float3, b: f32 }"),
        ("C", 32, "{ d: f64, e: i8, _padding: \"u8[23]\" }"),
        ("D", 8, "{ i: i32, _padding: \"u8[4]\" }"),
        ("E", 8, "{ d: f64 }"),
    ] {
        let described = describe(&unit, ty, Role::Input, false).unwrap();
        assert_eq!(
            (described.bytes, described.yaml.as_str()),
            (bytes, yaml),
            "{ty}"
        );
    }
}
