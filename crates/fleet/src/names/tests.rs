use super::*;

#[test]
fn names_are_words_and_fleets_do_not_meet() {
    for bad in ["", "a.b", "a b", "*", "a>", &"x".repeat(33)] {
        assert!(Names::new(bad).is_err(), "{bad}");
    }
    let (a, b) = (Names::new("a").unwrap(), Names::new("b").unwrap());
    assert_ne!(a.work(), b.work());
    assert_ne!(a.all_work(), b.all_work());
    let queue = Queue::compile("sm_90a", "13.0");
    assert_eq!(queue.consumer(), "compile_sm_90a-nvrtc13_0");
    assert_eq!(
        a.order(&queue, "run", &ContentHash::from_stored("1>.*".to_owned())),
        "tuner.a.v2.work.compile.sm_90a-nvrtc13_0.run.1___"
    );
    assert_eq!(
        class(DeviceKind::Cuda, "NVIDIA H200", "13.0"),
        "cuda-nvidia_h200-nvrtc13_0"
    );
}
