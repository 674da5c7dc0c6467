use super::guarded;

#[test]
fn a_guard_is_recognised_in_both_forms() {
    for guard in [
        "#ifndef A_H",
        "# ifndef A_H",
        "#if !defined(A_H)",
        "#if ! defined A_H",
    ] {
        assert_eq!(guarded(guard), Some("A_H"), "{guard}");
    }
    for other in [
        "#ifdef A_H",
        "#if A_H",
        "#if !defined(A) && B",
        "#if defined(A_H)",
    ] {
        assert_eq!(guarded(other), None, "{other}");
    }
}

/// Returns names of the items of a file with such a text, with their kinds and namespaces.
fn items(text: &str) -> Vec<(super::Kind, Vec<String>, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernel.cu");
    std::fs::write(&file, text).unwrap();
    let unit = super::Unit::read(&file, &[]).unwrap();
    let items = unit.items.iter().map(|item| {
        let place = item.path(item.names.first().map_or("", String::as_str));
        (item.kind, item.names.clone(), place)
    });
    items.collect()
}

#[test]
fn macros_that_define_are_items_and_swallow_nothing() {
    let text = "\
#define OPERATOR(NAME, X) namespace ops { struct NAME { __device__ float operator()(float a) { return X; } }; }
#define FUNCTION(NAME, X) __device__ float NAME##_of(float a) { return X; }
#define INLINE __device__ inline
#define ANNOTATED(NAME) INLINE int NAME(int a) { return a; }
#define BOTH(NAME, X) OPERATOR(NAME, X) FUNCTION(NAME, X)
#define HOST(NAME) void NAME() { puts(#NAME); }
#define REGISTER(NAME) static const int NAME##_number = add(#NAME);
#define KERNEL(NAME) __global__ void NAME
OPERATOR(twice, 2 * a)
namespace own {
#if 1
FUNCTION(half, a / 2)
#endif
BOTH(thrice, (3 * a));
__device__ float last(float a) { return a; }
}
ANNOTATED(same)
HOST(greet)
REGISTER(greet)
__global__ void third(float* y) { *y = 3; }
HOST(leave)
KERNEL(first)(float* y) { FUNCTION(inside, a) *y = own::half_of(1); }
__global__ void second(float* y) { *y = ops::twice()(1); }
";
    use super::Kind::{Device, Expansion, Kernel};
    let all = items(text);
    let of = |kind| -> Vec<&str> {
        let found = all.iter().filter(|item| item.0 == kind);
        found.map(|item| item.2.as_str()).collect()
    };
    assert_eq!(
        of(Expansion),
        [
            "twice",
            "own::half_of",
            "own::thrice",
            "same",
            "greet_number"
        ]
    );
    assert_eq!(of(Device), ["own::last"]);
    for kernel in ["second", "third"] {
        assert!(of(Kernel).contains(&kernel), "{all:?}");
    }
    assert!(
        !all.iter().any(|item| item.1.contains(&"greet".to_owned())),
        "{all:?}"
    );
    let both = all
        .iter()
        .find(|item| item.1.contains(&"thrice_of".to_owned()));
    assert_eq!(both.unwrap().0, Expansion);
}

#[test]
fn a_macro_that_instantiates_kernels_and_one_that_ends_in_a_backslash_stay_apart() {
    let text = "\
#define SCALE(X) \\
    ((X) * 2) \\

template <int N> __global__ void other(float* y) { y[N] = 1; }
#define MAKE(N) \\
template __global__ void other<N>(float* y); \\

MAKE(3)
MAKE(4)
__device__ float used(float a) { return SCALE(a); }
__global__ void own(float* y) { *y = used(1); }
";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernel.cu");
    std::fs::write(&file, text).unwrap();
    let unit = super::Unit::read(&file, &[]).unwrap();
    let named = |item: &super::Item| item.names.contains(&"own".to_owned());
    let own = unit.items.iter().position(named).unwrap();
    let kept = crate::cut::reach(&unit, own, &std::collections::BTreeSet::new());
    let template = crate::cut::write(&unit, &kept, &Default::default(), &[], &|_| true);
    assert!(
        template.text.contains("__device__ float used"),
        "{}",
        template.text
    );
    assert!(!template.text.contains("MAKE"), "{}", template.text);
    assert!(!template.text.contains("2) \\"), "{}", template.text);
}

#[test]
fn branches_of_a_group_stay_one_group() {
    let text = "\
#ifndef A
#define A 1
#elif B
#if C
#define D 2
#endif
#else
#define D A
#endif
#ifdef E
#define F 1
#endif
#ifdef E
#else
#define F 2
#endif
__global__ void own(float* y) { *y = D + F; }
";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernel.cu");
    std::fs::write(&file, text).unwrap();
    let unit = super::Unit::read(&file, &[]).unwrap();
    let kept = (0..unit.items.len()).collect();
    let template = crate::cut::write(&unit, &kept, &Default::default(), &[], &|_| true);
    let lines = template
        .text
        .lines()
        .skip_while(|line| *line != "#ifndef A");
    let lines = lines.filter(|line| !line.starts_with("#line"));
    assert_eq!(lines.collect::<Vec<_>>(), text.lines().collect::<Vec<_>>());
}
