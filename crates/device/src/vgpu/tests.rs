use super::{Limits, VirtualGpu, wrong_target};
use tuner_core::element::Element;
use tuner_core::plan::{Code, Plan, PlanArgument, PlanLaunch, PlanReference, Role};
use tuner_judge::session::{Blocks, Order, Run, Session as _};

#[test]
fn code_for_a_newer_gpu_is_refused_and_code_for_an_older_one_runs() {
    assert_eq!(wrong_target("sm_80", 90), None);
    assert_eq!(wrong_target("sm_90", 90), None);
    assert_eq!(wrong_target("sm_90a", 90), None);
    for (target, cc) in [
        ("sm_90", 80),
        ("sm_90a", 100),
        ("sm_120", 90),
        ("sm_90a", 89),
    ] {
        assert!(wrong_target(target, cc).is_some(), "{target} on {cc}");
    }
}

/// Adds 1 to a variable of its module.
const COUNTER: &str = "
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 count = 5;
.visible .entry bump(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    atom.global.add.u32 %r1, [count], 1;
    st.global.u32 [%rd2], %r1;
    ret;
}";

#[test]
fn a_run_that_is_undone_leaves_no_state_in_variables() {
    let arch = ::vgpu::Arch::by_name("a100").unwrap();
    let mut gpu = VirtualGpu::new(arch, Limits::default());
    let code = Code {
        ptx: COUNTER.into(),
        registers: 8,
        ..Code::default()
    };
    let out = PlanArgument::new("out", Element::U32, Role::Output, &[1]);
    let launch = PlanLaunch::new("bump", [1; 3], [1; 3], vec![0]);
    let plan = Plan::new(
        vec![out],
        vec![launch.clone()],
        code.clone(),
        PlanReference::None,
    );
    gpu.reset();
    let slot = gpu.alloc("out", 4).unwrap();
    let run = |gpu: &mut VirtualGpu| {
        let slots = [Some(slot)];
        let report = gpu.run(&Run {
            code: &code,
            launch: &launch,
            plan: &plan,
            slots: &slots,
            blocks: Blocks::All,
            order: Order::Natural,
            budget: None,
        });
        (
            report.unwrap().hazards.len(),
            gpu.download(slot).unwrap()[0],
        )
    };
    assert_eq!(run(&mut gpu), (0, 5));
    gpu.restore_variables(&code).unwrap();
    assert_eq!(run(&mut gpu), (0, 5));
    // A run that is not undone does.
    assert!(gpu.keep_variables(&code).unwrap());
    gpu.reset();
    gpu.alloc("out", 4).unwrap();
    assert_eq!(run(&mut gpu), (1, 6));
    gpu.restore_variables(&code).unwrap();
    assert_eq!(run(&mut gpu), (1, 6));
}
