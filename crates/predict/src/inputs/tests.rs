use super::*;
use tuner_core::element::Element;
use tuner_core::plan::PlanReference;

fn input(name: &str, count: u64) -> PlanArgument {
    PlanArgument {
        name: name.to_owned(),
        element: Element::F32,
        role: Role::Input,
        shape: vec![count],
        fill: Fill::Uniform { min: 1.0, max: 2.0 },
        value: 0.0,
        layout: None,
        passed: None,
    }
}

fn plan(ptx: &str) -> Plan {
    let arguments = vec![input("small", 1000), input("large", 300_000)];
    let code = Code {
        ptx: ptx.into(),
        ..Code::default()
    };
    Plan::new(arguments, Vec::new(), code, PlanReference::None)
}

#[test]
fn small_inputs_are_those_of_one_code_and_large_ones_are_shared() {
    let arch = Arch::by_name("l4").unwrap();
    let mut inputs = ArgumentMemory::new(&plan("a"), 1 << 30, arch).unwrap();
    let mut data = |code: &str| {
        inputs.fill_for(&plan(code), arch).unwrap();
        [0, 1].map(|number| inputs.memory.read(inputs.buffer(number).unwrap()))
    };
    let (first, second, again) = (data("a"), data("b"), data("a"));
    assert_eq!(first, again);
    assert_ne!(first[0], second[0]);
    assert_eq!(first[1], second[1]);
    // No float is zero.
    let (words, _) = first[1].as_chunks::<4>();
    assert!(words.iter().all(|word| f32::from_le_bytes(*word) >= 1.0));
    let names: Vec<&str> = inputs.made_up.iter().map(|(_, name)| &**name).collect();
    assert_eq!(names, ["large"]);
}
