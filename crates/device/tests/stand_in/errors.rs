//! Outcome of every error that a driver call can return.

use super::{arch, everything};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use tuner_core::record::Verdict;
use tuner_device::cuda::CALLS;
use tuner_device::gpu::driver::{Blame, CudaError, code};
use tuner_testkit::fake::{Failing, Notes, VirtualDriver};

#[test]
fn every_call_of_the_door_is_made_on_the_way() {
    let (driver, notes) = Failing::new(VirtualDriver::with_arch(arch()), "", 0);
    assert!(everything(driver).is_ok());
    let made: BTreeSet<&str> = notes.borrow().calls.iter().copied().collect();
    let known: BTreeSet<&str> = CALLS.iter().copied().collect();
    assert_eq!(made, known);
}

#[test]
fn every_error_of_every_call_becomes_its_verdict_and_never_a_panic() {
    // Their failure has no effect: the handle is dropped in any case, or the value is optional.
    let tolerated = [
        "cuMemFree_v2",
        "cuGraphExecDestroy",
        "cuModuleUnload",
        "cuStreamDestroy_v2",
        "cuDevicePrimaryCtxRelease_v2",
    ];
    for (shift, call) in CALLS.iter().enumerate() {
        // Every kind of outcome at each call, and of the other codes a quarter, another one at the next call.
        let mut outcomes = BTreeSet::new();
        let codes = code::ALL.iter().enumerate().filter(|(at, (number, ..))| {
            let error = CudaError::new(call, *number);
            let outcome = (format!("{:?}", error.blame()), error.is_sticky());
            outcomes.insert(outcome) || (at + shift).is_multiple_of(4)
        });
        for (_, (number, name, ..)) in codes {
            let place = format!("{call} answers {name}");
            let error = CudaError::new(call, *number);
            let (driver, notes): (_, Rc<RefCell<Notes>>) =
                Failing::new(VirtualDriver::with_arch(arch()), call, *number);
            let ended = everything(driver);
            assert!(notes.borrow().failed, "{place}: never called");
            match ended {
                Err(Ok(opening)) => {
                    // There is no candidate to blame.
                    let text = opening.to_string();
                    assert!(
                        text.contains(name) || text.contains("no GPU"),
                        "{place}: {text}"
                    );
                }
                Err(Err((fault, corrupted))) if fault.verdict == Verdict::Ok => {
                    assert!(tolerated.contains(call) && corrupted, "{place}");
                }
                Err(Err((fault, corrupted))) => {
                    let wanted = match error.blame() {
                        Blame::Candidate(verdict) => verdict,
                        Blame::Device => Verdict::Crashed,
                    };
                    assert_eq!(fault.verdict, wanted, "{place}: {fault:?}");
                    assert!(
                        fault.detail.contains(name) || wanted == Verdict::OutOfMemory,
                        "{place}: {fault:?}"
                    );
                    assert_eq!(corrupted, error.is_sticky(), "{place}");
                }
                Ok(()) => assert!(
                    tolerated.contains(call)
                        || (*call == "cuInit" && *number == code::NO_DEVICE)
                        // The compiler omits variables that no kernel uses.
                        || (*call == "cuModuleGetGlobal_v2" && *number == code::NOT_FOUND),
                    "{place}: nobody noticed"
                ),
            }
        }
    }
}

#[test]
fn the_contract_of_errors_holds() {
    for (number, verdict, sticky) in [
        (code::ILLEGAL_ADDRESS, Verdict::OutOfBounds, true),
        (code::MISALIGNED_ADDRESS, Verdict::Misaligned, true),
        (code::LAUNCH_FAILED, Verdict::Crashed, true),
        (code::ASSERT, Verdict::Crashed, true),
        (code::ILLEGAL_INSTRUCTION, Verdict::Crashed, true),
        (code::HARDWARE_STACK_ERROR, Verdict::Crashed, true),
        (code::OUT_OF_MEMORY, Verdict::OutOfMemory, false),
        (code::INVALID_VALUE, Verdict::LaunchFailed, false),
        (code::LAUNCH_OUT_OF_RESOURCES, Verdict::LaunchFailed, false),
        (code::NO_BINARY_FOR_GPU, Verdict::LaunchFailed, false),
        (code::UNSUPPORTED_PTX_VERSION, Verdict::LaunchFailed, false),
    ] {
        let error = CudaError::new("cuLaunchKernel", number);
        assert_eq!(error.blame(), Blame::Candidate(verdict), "{error}");
        assert_eq!(error.is_sticky(), sticky, "{error}");
    }
    for number in [
        code::ECC_UNCORRECTABLE,
        code::UNKNOWN,
        code::DEVICE_UNAVAILABLE,
    ] {
        let error = CudaError::new("cuStreamSynchronize", number);
        assert_eq!(error.blame(), Blame::Device);
        assert!(error.is_sticky());
    }
    let unheard = CudaError::new("cuLaunchKernel", 12_345);
    assert_eq!(unheard.blame(), Blame::Candidate(Verdict::LaunchFailed));
    assert!(unheard.to_string().contains("12345"), "{unheard}");
}
