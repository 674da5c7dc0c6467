use super::*;

fn code(name: &str) -> Code {
    Code {
        cubin: name.bytes().chain(0..=255).collect(),
        static_shared_bytes: 16,
        ptx: format!("// {name} µ").into(),
        registers: 32,
        ..Code::default()
    }
}

fn plan(name: &str) -> Plan {
    let launch = tuner_core::plan::PlanLaunch::new("k", [1; 3], [1; 3], Vec::new());
    let reference = tuner_core::plan::PlanReference::Kernel {
        code: code(&format!("reference of {name}")),
        launch: launch.clone(),
        oracle: None,
    };
    Plan {
        problem: name.into(),
        ..Plan::new(Vec::new(), vec![launch], code(name), reference)
    }
}

#[test]
fn every_request_reads_back_with_all_its_code_and_holds_it_as_bytes() {
    let job = Job {
        checks: vec![plan("a"), plan("b")],
        timed: Some(plan("c")),
        ..Job::default()
    };
    let contest = TimingComparison {
        reference: Some(plan("d")),
        plans: vec![plan("e"), plan("f")],
        seed: 1,
        level: Level::Final,
    };
    let measuring = MeasureRequest {
        job: job.clone(),
        reference: Some(plan("g")),
        incumbent: Some(IncumbentPlan {
            plan: plan("h"),
            ratio: 0.5,
        }),
        energy: true,
    };
    for request in [
        Request::Open(Box::new(code("helpers"))),
        Request::Judge(Box::new(job)),
        Request::Measure(Box::new(measuring)),
        Request::Calibrate,
        Request::Examine(3),
        Request::Duel(Box::new(contest.clone())),
        Request::Finale(Box::new(contest)),
    ] {
        let parts = request.clone().into_parts().unwrap();
        assert!(!String::from_utf8_lossy(&parts[0]).contains("//"));
        assert_eq!(Request::from_parts(parts.clone()).unwrap(), request);
        if parts.len() > 1 {
            let cut = parts[..parts.len() - 1].to_vec();
            assert!(Request::from_parts(cut).is_err());
        }
    }
}
