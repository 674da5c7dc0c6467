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
