use super::*;
use std::path::Path;

fn written_out(text: &str) -> String {
    let source = Source::parse(Path::new("t.cu"), "t.cu".into(), text.to_owned()).unwrap();
    let found = Launching::collect(std::slice::from_ref(&source));
    let made = found.written_out(&source);
    made.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_function_that_a_macro_makes_is_written_out() {
    let text = "#define BIND(tag, type, \\\n n) \\\n  void run_##tag(T x, int N) { \\\n    \
                scale_##tag##_kernel<<<N / (n), 256>>>((type *)x.data(), N); \\\n  }\n\
                BIND(f32, float, 1)\nBIND(f32x4, float, 4)\n";
    assert_eq!(
        written_out(text),
        "void run_f32(T x, int N) { scale_f32_kernel<<<N / (1), 256>>>((float *)x.data(), N); } \
         void run_f32x4(T x, int N) { scale_f32x4_kernel<<<N / (4), 256>>>((float *)x.data(), N); }"
    );
}

#[test]
fn a_function_that_launches_by_macros_of_macros_is_written_out_once() {
    let text = "#define LAUNCH(W, ...) k<W><<<grid, 32 * W>>>(__VA_ARGS__);\n\
                #define ALL(N) switch (N) { case 1: LAUNCH(1, x, N) break; case 2: LAUNCH(2, x, N) }\n\
                #define OTHER(x) ((x) + 1)\n\
                void go(float* x, int n) { dim3 grid(OTHER(n)); ALL(n); }\nint rest() { return OTHER(2); }\n";
    assert_eq!(
        written_out(text),
        "void go(float* x, int n) { dim3 grid(OTHER(n)); switch (n) { case 1: k<1><<<grid, 32 * \
         1>>>(x, n); break; case 2: k<2><<<grid, 32 * 2>>>(x, n); }; }"
    );
}

#[test]
fn a_macro_among_its_own_arguments_is_written_out() {
    let text = "#define LAUNCHES_ONE_KERNEL(a) k<<<1, 1>>>(a)\n\
                void f() { LAUNCHES_ONE_KERNEL(LAUNCHES_ONE_KERNEL(x)); LAUNCHES_ONE_KERNEL(y); }\n";
    assert_eq!(
        written_out(text),
        "void f() { k<<<1, 1>>>(k<<<1, 1>>>(x)); k<<<1, 1>>>(y); }"
    );
}

#[test]
fn brackets_that_do_not_close_and_macros_of_themselves_end() {
    assert_eq!(written_out("#define GO(a) k<<<1, a>>>(GO(a));\nGO(1\n"), "");
    let made = written_out("#define GO(a) k<<<1, a>>>(GO(a));\nvoid f() { GO(1) }\n");
    assert!(made.contains("k<<<1, 1>>>"), "{made}");
}
