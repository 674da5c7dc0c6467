use super::{
    HEAD_BYTES, KernelResources, TAIL_BYTES, messages_of, parse_log, shortened, target_advice,
    unsupported,
};

const LOG: &str = "\
templates/t/kernel.cu(3): warning #177-D: variable \"x\" was declared but never referenced

ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k2' for 'sm_90'
ptxas info    : Function properties for k2
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
ptxas info    : Compile time = 15.045 ms
ptxas info    : Function properties for _ZN27_INTERNAL_1fEf
ptxas         .     64 bytes stack frame, 7 bytes spill stores, 9 bytes spill loads
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
ptxas         .     160 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 224 bytes cumulative stack size, 256 bytes smem
";

#[test]
fn each_kernel_gets_its_own_figures_and_functions_none() {
    let kernels = parse_log(LOG);
    assert_eq!(kernels.len(), 2);
    assert_eq!(
        kernels["k2"],
        KernelResources {
            registers: 8,
            ..Default::default()
        }
    );
    let expected = KernelResources {
        registers: 32,
        spill_store: 12,
        spill_load: 20,
        stack: 224,
        static_shared: 256,
    };
    assert_eq!(kernels["k"], expected);
}

#[test]
fn the_form_of_older_versions_is_read_too() {
    let log = "ptxas info    : Compiling entry function 'f' for 'sm_80'\n\
               ptxas info    : Function properties for f\n    \
               8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n\
               ptxas info    : Used 255 registers, 4096+0 bytes smem, 380 bytes cmem[0]\n";
    let expected = KernelResources {
        registers: 255,
        spill_store: 4,
        spill_load: 4,
        stack: 8,
        static_shared: 4096,
    };
    assert_eq!(parse_log(log)["f"], expected);
}

#[test]
fn a_long_log_keeps_its_beginning_its_end_and_all_figures_and_says_what_is_cut() {
    assert_eq!(shortened(LOG.to_owned()), LOG);
    for filler in ["é".repeat(1 << 20), "a line\n".repeat(1 << 20)] {
        let long = format!("first: error\n{filler}\nlast: error\n{LOG}");
        let short = shortened(long.clone());
        assert!(short.len() < HEAD_BYTES + TAIL_BYTES + LOG.len() + 200);
        assert!(short.starts_with("first: error\n"));
        assert!(short.contains("last: error\n"));
        assert_eq!(parse_log(&short), parse_log(&long));
        let said = short.split_once("[… ").unwrap().1;
        let cut: usize = said.split(' ').next().unwrap().parse().unwrap();
        assert!(cut > filler.len() - HEAD_BYTES - TAIL_BYTES && cut < filler.len());
    }
}

#[test]
fn messages_keep_warnings_and_drop_the_report() {
    assert_eq!(messages_of(LOG).trim().lines().count(), 1);
}

#[test]
fn a_refused_instruction_is_read_with_its_place_and_target() {
    let log =
        "a warning\nk.cu:15: error: Instruction 'wgmma.fence' not supported on .target 'sm_100'\n";
    let found = unsupported(log).unwrap();
    assert_eq!(
        (found.place, found.instruction, found.target),
        (Some("k.cu:15"), "wgmma.fence", "sm_100")
    );
    let advice = target_advice(log, false);
    assert_eq!(
        advice,
        "\nhelp: `wgmma` exists on sm_90a (compute capability 9.0, such as vgpu:h100)\n"
    );
    assert!(target_advice(log, true).contains("belongs to sm_100a"));
    assert_eq!(target_advice("k.cu:1: error: no", true), "");
}
