use super::*;
use tuner_device::limits;

fn gemm() -> Kernel {
    load("gemm_f32")
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
    let (planned, notes) = plan(&[kernel], &[], &target(), None).unwrap();
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
    let (planned, _) = plan(&[gemm()], &["tall".to_owned()], &target(), None).unwrap();
    assert_eq!(planned.len(), 1);
    for (name, hint) in [("ragged", "checks only"), ("huge", "choose from: deep")] {
        let error = plan(&[gemm()], &[name.to_owned()], &target(), None)
            .unwrap_err()
            .to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn the_same_kernel_twice_is_refused() {
    let error = plan(&[gemm(), gemm()], &[], &target(), None)
        .unwrap_err()
        .to_string();
    assert!(error.contains("named twice"), "{error}");
}

fn load(name: &str) -> Kernel {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    Kernel::load(&root.join(format!("search_spaces/{name}.yaml"))).unwrap()
}

#[test]
fn problems_with_the_same_sizes_in_their_constraints_share_a_space() {
    let kernels = ["gemm_f32", "softmax", "reduce_sum"].map(load);
    let (planned, _) = plan(&kernels, &[], &target(), None).unwrap();
    for one in &planned {
        let (spec, problem) = (&kernels[one.kernel].spec, &one.task.key.problem);
        let alone = spec.space(problem, &target().limits).unwrap();
        assert_eq!(one.task.space.count(), alone.count(), "{problem}");
    }
    let distinct = kernels.each_ref().map(|kernel| {
        let sizes = |problem| kernel.spec.space_sizes(problem);
        let mut all: Vec<_> = kernel.spec.problems.iter().map(sizes).collect();
        all.sort_by_key(|sizes| format!("{sizes:?}"));
        all.dedup();
        (all.len(), kernel.spec.problems.len())
    });
    let [(gemm, problems), (softmax, all), _] = distinct;
    assert!(gemm == 1 && problems > 1, "{distinct:?}");
    assert_eq!(softmax, all, "its rows bound the threads");
}

#[test]
fn a_deadline_leaves_out_problems_but_the_one_with_the_smallest_space() {
    let kernels = [gemm(), load("softmax")];
    let all = plan(&kernels, &[], &target(), None).unwrap().0.len();
    let (planned, notes) = plan(&kernels, &[], &target(), Some(Instant::now())).unwrap();
    let [one] = &planned[..] else {
        panic!("{} problems", planned.len());
    };
    assert_eq!(one.task.key.kernel, "softmax");
    let said = format!("note: {} of {all} problems are left out", all - 1);
    assert!(
        notes.iter().any(|note| note.starts_with(&said)),
        "{notes:?}"
    );
}
