use super::*;
use crate::element::Element;
use crate::fill::Fill;

#[test]
fn the_identity_of_work_is_what_earlier_versions_stored() {
    use Role::{Input, Output, Scalar, Scratch};
    let normal = |std| Fill::Normal { mean: 0.0, std };
    let uniform = Fill::Uniform {
        min: -1.0,
        max: 100.0,
    };
    let argument = |name: &str, element, role, shape: &[u64], fill, value| PlanArgument {
        fill,
        value,
        ..PlanArgument::new(name, element, role, shape)
    };
    let plan = Plan {
        problem: "p".to_owned(),
        sizes: vec![("N".to_owned(), 3.0), ("FLAG".to_owned(), 1.0)],
        ..Plan::new(
            vec![
                argument("x", Element::F8e4m3, Input, &[3, 5], normal(1.5), 0.0),
                argument("i", Element::I64, Input, &[7], uniform, 0.0),
                argument("c", Element::Bf16, Input, &[7], Fill::Constant(0.25), 0.0),
                argument("a", Element::U32, Input, &[7], Fill::Arange, 0.0),
                argument("s", Element::F32, Scratch, &[9], Fill::Zeros, 0.0),
                argument("y", Element::F16, Output, &[3], normal(1.0), 0.0),
                argument("alpha", Element::F64, Scalar, &[], normal(1.0), -0.125),
            ],
            vec![PlanLaunch {
                shared_bytes: 49152,
                ..PlanLaunch::new("k", [70000, 2, 1], [128, 1, 1], vec![0, 1, 2, 3, 4, 5, 6])
            }],
            Code {
                cubin: vec![1, 2, 3].into(),
                registers: 32,
                ..Code::default()
            },
            PlanReference::Oracle("gemm".to_owned()),
        )
    };
    assert_eq!(
        plan.work(&plan.code.cubin).as_str(),
        "fb1e60e34981508192205cde2821ba5a59be73023ed64049a262a97f42038435"
    );
}
