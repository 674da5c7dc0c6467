use super::*;

#[test]
fn the_end_of_a_process_awaits_a_call_that_is_no_launch() {
    let arch = vgpu::Arch::by_name("a100").expect("a GPU");
    let options = Options {
        arch,
        hazards: true,
        kernels: Vec::new(),
        lane_budget: None,
        threads: 1,
        folder: PathBuf::new(),
        progress: None,
        prediction: crate::predicted::Prediction::Bound,
        capture: None,
    };
    let process = Process::new(0, &options);
    let device = Arc::clone(&process.device);
    let (sender, receiver) = std::sync::mpsc::channel();
    let call = std::thread::spawn(move || {
        let mut device = lock(&device);
        device.summary.add_note("a launch before".to_owned());
        sender.send(()).expect("the test waits");
        std::thread::sleep(FINISH_PATIENCE + Duration::from_millis(300));
    });
    receiver.recv().expect("the call has begun");
    let summary = process.finish(&options);
    assert_eq!(summary.notes, ["a launch before"]);
    call.join().expect("no panic");
}
