use super::roles;
use crate::unit::{Kind, Unit};
use tuner_core::plan::Role;

#[test]
fn comments_among_the_arguments_of_a_call_are_no_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.cu");
    let text = "__device__ void copy(float* to, const float* from) { to[0] = from[0]; }\n\
        __global__ void own(float* y, float* x) {\n\
          copy(/* to */ y, // from\n x);\n}\n\
        __global__ void known(float* y, float* x) { memcpy(/* to */ y, /* from */ x, 4); }\n\
        __global__ void cast(float4* y, float* x) {\n\
          memcpy(reinterpret_cast<float*>(/* whole */ y), (/* part */ x), 4);\n}\n";
    let text = format!(
        "{text}struct view {{ float* p; }};\n\
         __global__ void kept(float* y, float* x) {{ view a{{y}}; a[0] = x[0]; }}\n"
    );
    std::fs::write(&file, text).unwrap();
    let unit = Unit::read(&file, &[]).unwrap();
    for (kernel, y) in [
        ("own", Role::Inout),
        ("known", Role::Output),
        ("cast", Role::Output),
        ("kept", Role::Inout),
    ] {
        let of_name = |item: &&crate::unit::Item| {
            item.kind == Kind::Kernel && item.names.iter().any(|name| name == kernel)
        };
        let item = unit.items.iter().find(of_name).unwrap();
        let found = roles(&unit, item);
        assert_eq!((found["y"], found["x"]), (y, Role::Input), "{kernel}");
    }
}

#[test]
fn a_pointer_in_braces_is_used_as_what_it_initialises() {
    let text = "struct view { const float *first, *second; float* third; static int n; };\n\
        struct own { own(float* a, const float* b); const float* b; float* a; };\n\
        struct derived : view { };\n\
        template <typename T> struct some { const T* p; T* q; };\n\
        __global__ void alias(float* a, float* b, float* c) {\n\
          float* out{a}; const float* in{b}; auto more{c}; out[0] = in[0] + more[0]; }\n\
        __global__ void read(float* a, float* b, float* c) { const view v{b, c, a}; use(v); }\n\
        __global__ void named(float* a, float* b, float* c) { use(view{.first = b, .third = a}); use(c[0]); }\n\
        __global__ void array(float* a, float* b, float* c) {\n\
          const float* two[2] = {b, c}; float* one[2] = {a, a}; one[0][0] = two[1][0]; }\n\
        __global__ void instance(float* a, float* b, float* c) { some<float> s{b, a}; use(s); const float* const d = {c}; }\n\
        __global__ void made(float* a, float* b, float* c) { own o{a, b}; derived d{c}; }\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.cu");
    std::fs::write(&file, text).unwrap();
    let unit = Unit::read(&file, &[]).unwrap();
    for (kernel, a, others) in [
        ("alias", Role::Output, Role::Input),
        ("read", Role::Inout, Role::Input),
        ("named", Role::Inout, Role::Input),
        ("array", Role::Inout, Role::Input),
        ("instance", Role::Inout, Role::Input),
        // A constructor may take its arguments in another order than that of the fields.
        ("made", Role::Inout, Role::Inout),
    ] {
        let of_name = |item: &&crate::unit::Item| {
            item.kind == Kind::Kernel && item.names.iter().any(|name| name == kernel)
        };
        let item = unit.items.iter().find(of_name).unwrap();
        let found = roles(&unit, item);
        let all = ["a", "b", "c"].map(|name| found[name]);
        assert_eq!(all, [a, others, others], "{kernel}");
    }
}
