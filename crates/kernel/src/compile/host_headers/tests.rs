use super::{Header, Template, advice, beside, included_host_headers, is_host_header, names};
use std::collections::BTreeSet;

#[test]
fn each_name_is_there_once_and_gives_way_to_a_file_of_the_user() {
    let all: BTreeSet<&str> = names().collect();
    assert_eq!(all.len(), names().count());
    assert!(is_host_header("stdint.h") && is_host_header("vector"));
    assert!(!is_host_header("cuda_fp16.h"));
    let own = Header {
        spelled: "assert.h".into(),
        path: "mine/assert.h".into(),
        text: String::new(),
    };
    let given = beside(&[own]);
    assert_eq!(given.len() + 1, all.len());
    assert!(given.iter().all(|header| header.spelled != "assert.h"));
}

#[test]
fn what_is_missing_is_told_with_what_to_type() {
    let log = "t.cu(1): catastrophic error: cannot open source file \"my/util.h\"\n\
               t.cu(2): error: namespace \"std\" has no member \"vector\"\n";
    let said = advice(log);
    assert!(said.contains("compile: { include: [FOLDER] }"), "{said}");
    assert!(said.contains("`std::vector` is host code"), "{said}");
    assert!(advice("cannot open source file \"cub/cub.cuh\"").contains("make nvrtc"));
    assert!(advice("cannot open source file \"curand_kernel.h\"").contains("nvidia-curand"));
    assert_eq!(advice("t.cu(1): error: expected a \";\""), "");
}

#[test]
fn included_headers_are_transitive_and_leave_out_those_of_the_template() {
    let own = Header {
        spelled: "vector".to_owned(),
        path: "vector".to_owned(),
        text: "#include \"cmath\"\n".to_owned(),
    };
    let text = "#include <cstdint>\n#include <vector>\n#include <cuda_fp16.h>\n\
                #define IO <stdio.h>\n#if 0\n#include IO\n#endif\n";
    let template = Template::new("k.cu", text, vec![own], Vec::new());
    let included = included_host_headers(&template);
    let names: Vec<&str> = included.iter().map(|one| one.spelled.as_str()).collect();
    assert_eq!(
        names,
        [
            "cmath", "cstdint", "math.h", "stddef.h", "stdint.h", "stdio.h"
        ]
    );
}

#[test]
fn a_name_of_a_host_header_is_told_with_that_header() {
    let said = |name: &str| {
        advice(&format!(
            "k.cu(3): error: identifier \"{name}\" is undefined"
        ))
    };
    assert!(said("INFINITY").contains("`#include <math.h>`"));
    assert!(said("FLT_MAX").contains("`#include <float.h>`"));
    assert!(said("uint32_t").contains("`#include <stdint.h>`"));
    assert_eq!(said("rows_of_x"), "");
}

/// CCCL defines some names only in newer versions, and an undefined one ends every compile that includes
/// its header. Try a name that is new here with the oldest supported version, CUDA 12.4, at `--std=c++17`:
/// one that is not there needs `#if CCCL_VERSION >= …`.
#[test]
fn names_without_a_condition_are_in_the_oldest_supported_version() {
    let mut names = BTreeSet::new();
    for (_, text) in super::HEADERS {
        let mut depth = 0_u32;
        let is_new = text.contains("#if __cplusplus >= 201703L && __has_include");
        for line in text.lines() {
            if line.starts_with("#if") {
                depth += 1;
            } else if line.starts_with("#endif") {
                depth -= 1;
            } else if depth <= u32::from(is_new) {
                let used = line.split("using cuda::std::").skip(1);
                names.extend(used.filter_map(|rest| rest.split(';').next()));
            }
        }
        assert_eq!(depth, 0);
    }
    let all: Vec<&str> = names.into_iter().collect();
    insta::assert_snapshot!(all.join("\n"));
}
