use super::{Fit, Form, Parameter, base, fits};
use tuner_core::element::Element;
use tuner_core::element::Element::*;

fn parameter(ty: &str, bytes: u64) -> Parameter {
    Parameter {
        ty: ty.to_owned(),
        bytes,
        is_enum: false,
    }
}

#[test]
fn the_form_of_a_type_is_read_through_qualifiers_and_arrays() {
    let constant = Form::Pointer { constant: true };
    let plain = Form::Pointer { constant: false };
    for (ty, form) in [
        ("float", Form::Value),
        ("float const*", constant),
        ("float*", plain),
        ("float volatile*", plain),
        ("float const volatile*", constant),
        ("float const* const*", Form::Other),
        ("float (*) [4]", plain),
        ("float const (*) [4]", constant),
        ("float (&) [3]", plain),
        ("int (*)(int)", Form::Other),
        ("vec<float const, (unsigned long)2>", Form::Value),
        ("vec<float const, (unsigned long)2>*", plain),
        ("vec<float, (unsigned long)2> const*", constant),
        ("vec<float, (unsigned long)2> (*) [4]", plain),
        ("call<int (*)(int)>", Form::Value),
    ] {
        assert_eq!(parameter(ty, 4).form(), form, "{ty}");
    }
}

#[test]
fn each_declared_type_takes_its_own_and_no_other() {
    let own: [(&str, u64, Element); 11] = [
        ("__half", 2, F16),
        ("__nv_bfloat16", 2, Bf16),
        ("float", 4, F32),
        ("double", 8, F64),
        ("signed char", 1, I8),
        ("int", 4, I32),
        ("unsigned int", 4, U32),
        ("long", 8, I64),
        ("unsigned long long", 8, I64),
        ("__nv_fp8_e4m3", 1, F8e4m3),
        ("__nv_fp8_e5m2", 1, F8e5m2),
    ];
    for (ty, bytes, right) in own {
        for (_, _, declared) in own {
            let value = parameter(ty, bytes).takes_scalar(declared);
            let fits = !matches!(value, Fit::Wrong);
            let raw = ty == "signed char" && matches!(declared, F8e4m3 | F8e5m2);
            assert_eq!(fits, declared == right || raw, "{ty} for {declared:?}");
        }
        assert_eq!(parameter(ty, bytes).declaration(), Some(right), "{ty}");
    }
}

#[test]
fn vectors_of_the_declared_type_are_the_declared_type() {
    for (ty, bytes, declared) in [
        ("float4 const*", 16, F32),
        ("double2*", 16, F64),
        ("double4_16a*", 32, F64),
        ("__half2*", 4, F16),
        ("__nv_bfloat162 const*", 4, Bf16),
        ("char4*", 4, I8),
        ("uchar4*", 4, U8),
        ("longlong2*", 16, I64),
        ("__nv_fp8x4_e5m2*", 4, F8e5m2),
    ] {
        let found = parameter(ty, bytes).takes_buffer(declared);
        assert_eq!(found, Fit::Same, "{ty}");
    }
    assert_eq!(parameter("float4*", 16).takes_buffer(F16), Fit::Wrong);
    assert_eq!(parameter("float4", 16).takes_scalar(F32), Fit::Wrong);
}

#[test]
fn a_type_of_ones_own_is_compared_by_size() {
    let pixel = parameter("Pixel*", 12);
    assert!(matches!(pixel.takes_buffer(F32), Fit::Loose(_)));
    assert_eq!(pixel.takes_buffer(F64), Fit::Wrong);
    assert_eq!(parameter("Pixel", 12).takes_scalar(F32), Fit::Wrong);
    assert!(matches!(
        parameter("Fixed", 4).takes_scalar(I32),
        Fit::Loose(_)
    ));
}

#[test]
fn every_cpp_name_of_an_element_is_accepted_for_it() {
    for element in Element::ALL {
        let name = element.cpp_name();
        assert_eq!(fits(*element, base(name).0), Fit::Same, "{name}");
    }
}
