use super::*;
use crate::job::virtual_facts;

#[test]
fn an_assignment_without_search_spaces_uses_none_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("search_spaces")).unwrap();
    let device = virtual_facts("h100").unwrap();
    let assignment = Assignment {
        device,
        nvrtc: None,
        recording: None,
        kernels: Vec::new(),
        tasks: Vec::new(),
        arch: None,
        prior: None,
    };
    let made = Bench::on_device(
        &assignment,
        &[],
        folder.path(),
        "vgpu:h100",
        LocalPaths::new(),
    );
    let why = made.err().map(|error| error.to_string());
    assert_eq!(
        why.as_deref(),
        Some("no search space was sent with the run")
    );
}
