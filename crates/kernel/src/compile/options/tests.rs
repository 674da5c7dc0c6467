use super::front_end;

#[test]
fn a_target_of_machine_code_becomes_one_of_ptx_however_it_is_written() {
    for options in [
        vec!["--gpu-architecture=sm_90a", "-lineinfo"],
        vec!["-arch", "sm_90a", "-lineinfo"],
        vec!["-lineinfo", "-arch=sm_90a"],
    ] {
        let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
        let expected = ["-lineinfo", "--gpu-architecture=compute_90a"];
        assert_eq!(front_end(&options, "sm_90a"), expected, "{options:?}");
    }
}
