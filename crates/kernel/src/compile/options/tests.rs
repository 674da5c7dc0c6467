use super::{front_end, lasting};

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

#[test]
fn only_options_that_are_known_to_end_with_their_compile_leave_a_worker_as_it_was() {
    let lasting = |options: &str| {
        let options: Vec<String> = options.split(' ').map(str::to_owned).collect();
        lasting(&options).join(" ")
    };
    let of_one = "--gpu-architecture=sm_90 -arch sm_90 -I/folder -I /folder -DA=1 -D B=2 --std=c++20 -lineinfo \
                  --ptxas-options=-v -Xptxas -O1 --maxrregcount=32 -fmad=false --use_fast_math -w";
    assert_eq!(lasting(of_one), "");
    assert_eq!(
        lasting("-G -lineinfo --restrict --Ofast-compile max -I/folder --new-option=1"),
        "-G --restrict --Ofast-compile max --new-option=1"
    );
}
