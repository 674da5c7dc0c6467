use super::*;
use tuner_device::limits;

fn gemm() -> Kernel {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    Kernel::load(&root.join("search_spaces/gemm_f32.yaml")).unwrap()
}

fn target() -> Target<'static> {
    Target {
        device: "vgpu:h100",
        limits: limits::by_name("h100").unwrap(),
        driver: None,
        nvrtc: None,
    }
}

#[test]
fn every_timed_problem_is_planned_with_the_default_first_and_the_seeds_after() {
    let kernel = gemm();
    let problems = kernel.spec.problems.len();
    let (planned, notes) = plan(&[kernel], &[], &target()).unwrap();
    assert_eq!(planned.len(), problems);
    for one in &planned {
        assert_eq!(one.kernel, 0);
        assert_eq!(one.task.start[0].origin, "default");
        assert!(
            one.task
                .start
                .iter()
                .all(|point| one.task.space.contains(&point.config))
        );
        assert!(one.stored.default_config.is_some() && one.stored.template_hash.is_some());
    }
    assert!(
        notes.iter().all(|note| !note.contains("left out")),
        "{notes:?}"
    );
}

#[test]
fn problems_are_chosen_by_name() {
    let (planned, _) = plan(&[gemm()], &["tall".to_owned()], &target()).unwrap();
    assert_eq!(planned.len(), 1);
    for (name, hint) in [("ragged", "checks only"), ("huge", "choose from: deep")] {
        let error = plan(&[gemm()], &[name.to_owned()], &target())
            .unwrap_err()
            .to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn the_same_kernel_twice_is_refused() {
    let error = plan(&[gemm(), gemm()], &[], &target())
        .unwrap_err()
        .to_string();
    assert!(error.contains("named twice"), "{error}");
}
