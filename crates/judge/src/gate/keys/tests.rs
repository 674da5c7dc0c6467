use super::*;
use std::collections::BTreeSet;
use tuner_core::element::Element;
use tuner_core::fill::Fill;
use tuner_core::plan::{Code, PlanArgument, PlanLaunch, PlanReference};

fn argument(name: &str, role: Role) -> PlanArgument {
    PlanArgument {
        fill: Fill::Zeros,
        ..PlanArgument::new(name, Element::F16, role, &[16])
    }
}

fn code(ptx: &str) -> Code {
    Code {
        ptx: ptx.into(),
        registers: 8,
        ..Code::default()
    }
}

fn plan() -> Plan {
    let launch = PlanLaunch::new("plain", [1, 1, 1], [32, 1, 1], vec![0, 1, 2, 3]);
    Plan {
        problem: "small".to_owned(),
        sizes: vec![("N".to_owned(), 16.0)],
        ..Plan::new(
            vec![
                argument("x", Role::Input),
                argument("s", Role::Scalar),
                argument("t", Role::Scratch),
                argument("y", Role::Output),
            ],
            vec![launch.clone()],
            code("candidate"),
            PlanReference::Kernel {
                code: code("reference"),
                launch,
                oracle: None,
            },
        )
    }
}

/// Returns the plan with a changed reference.
fn referenced(change: impl Fn(&mut Code, &mut PlanLaunch, &mut Option<String>)) -> Plan {
    let mut plan = plan();
    if let PlanReference::Kernel {
        code,
        launch,
        oracle,
    } = &mut plan.reference
    {
        change(code, launch, oracle);
    }
    plan
}

fn changed(change: impl Fn(&mut Plan)) -> Plan {
    let mut plan = plan();
    change(&mut plan);
    plan
}

#[test]
fn everything_that_decides_what_is_right_makes_an_expectation_of_its_own() {
    let mut variants = vec![
        plan(),
        changed(|plan| plan.arguments[0].element = Element::Bf16),
        changed(|plan| plan.arguments[0].shape = vec![4, 4]),
        changed(|plan| plan.arguments[0].any_value = true),
        changed(|plan| plan.arguments[0].fill = Fill::Arange),
        changed(|plan| plan.arguments[0].fill = Fill::Constant(1.0)),
        changed(|plan| plan.arguments[0].name = "z".to_owned()),
        changed(|plan| plan.arguments[1].value = 2.0),
        changed(|plan| plan.arguments[1].value = -0.0),
        changed(|plan| plan.arguments[1].element = Element::F32),
        changed(|plan| plan.arguments[2].shape = vec![17]),
        changed(|plan| plan.arguments[3].element = Element::F32),
        changed(|plan| plan.sizes[0].1 = 17.0),
        changed(|plan| plan.sizes[0].0 = "M".to_owned()),
        changed(|plan| plan.gate.atol = Some(1.0)),
        changed(|plan| plan.gate.deterministic = false),
        changed(|plan| plan.flops = Some(1.0)),
        changed(|plan| plan.reference = PlanReference::Oracle("gemm".to_owned())),
        changed(|plan| plan.reference = PlanReference::Oracle("softmax".to_owned())),
    ];
    variants.push(referenced(|code, _, _| code.ptx = "edited".into()));
    variants.push(referenced(|code, _, _| code.cubin = vec![1].into()));
    variants.push(referenced(|_, launch, _| launch.entry = "other".to_owned()));
    variants.push(referenced(|_, launch, _| launch.grid[0] = 2));
    variants.push(referenced(|_, launch, _| launch.shared_bytes = 4));
    variants.push(referenced(|_, launch, _| launch.arguments.swap(0, 3)));
    variants.push(referenced(|_, _, oracle| {
        *oracle = Some("gemm".to_owned());
    }));
    let keys: BTreeSet<_> = variants.iter().map(expectation).collect();
    assert_eq!(keys.len(), variants.len());
}

#[test]
fn names_and_the_candidates_own_code_do_not_count() {
    let same = [
        changed(|plan| plan.problem = "other".to_owned()),
        changed(|plan| plan.code.ptx = "another candidate".into()),
        changed(|plan| plan.launches[0].grid[0] = 7),
    ];
    for other in same {
        assert_eq!(expectation(&other), expectation(&plan()));
    }
}

#[test]
fn scratch_of_a_configuration_leaves_inputs_shared() {
    let wider = changed(|plan| plan.arguments[2].shape = vec![17]);
    let data = Data::seeded(1);
    let plain = plan();
    let (one, other) = (KeyedPlan::new(&plain), KeyedPlan::new(&wider));
    assert_eq!(one.inputs(data), other.inputs(data));
    assert_ne!(one.outputs(data), other.outputs(data));
}
