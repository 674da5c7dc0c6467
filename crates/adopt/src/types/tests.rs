use super::{describe, element, lanes};
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
        assert_eq!(element(ty).as_deref(), Some(name), "{ty}");
    }
    for ty in ["float**", "Params", "cudaTextureObject_t3", "float&"] {
        assert_eq!(element(ty), None, "{ty}");
    }
    let counts: Vec<usize> = ["f32", "float4", "int2", "i32", "half2", "u64", "uchar3"]
        .map(lanes)
        .to_vec();
    assert_eq!(counts, [1, 4, 2, 1, 2, 1, 3]);
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
        ("Other", "do not say"),
        ("Vec<float>", "template"),
    ] {
        let refused = of(ty, Role::Input).unwrap_err();
        assert!(refused.why.contains(why), "{ty}: {}", refused.why);
    }
}
