use super::*;

fn with_headers(names: &[&str]) -> Context {
    Context {
        headers: names.iter().map(ToString::to_string).collect(),
        ..Context::default()
    }
}

fn with_macro(name: &str, values: &[&str]) -> Context {
    let values = values.iter().map(ToString::to_string).collect();
    Context {
        macros: [(name.to_owned(), values)].into(),
        ..Context::default()
    }
}

#[test]
fn headers_of_cuda_and_of_the_parent_are_allowed() {
    let source = "#include <cuda_fp16.h>\n# include \"shared.cuh\"\nint x; // #include <x.h>\n";
    assert_eq!(check(source, &with_headers(&["shared.cuh"])), Ok(()));
    assert!(check(source, &Context::default()).is_err());
}

#[test]
fn each_allowed_name_is_listed_once() {
    let parent = ["shared.cuh", CUDA_HEADERS[3]].map(str::to_owned);
    let mut names = allowed(&parent);
    assert_eq!(names[..2], parent);
    assert_eq!(names.len(), CUDA_HEADERS.len() + 1);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), CUDA_HEADERS.len() + 1);
}

#[test]
fn every_spelling_of_another_header_is_refused_by_name() {
    for source in [
        "#include \"/etc/passwd\"",
        "#include <cublas_v2.h>",
        "#include <cutlass/gemm/device/gemm.h>",
        "  #  include <cub/cub.cuh>",
        "%:include <cub/cub.cuh>",
        "#inc\\\nlude <cub/cub.cuh>",
        "#include \\\n  <cub/cub.cuh>",
        "/* a */ #include <cub/cub.cuh>",
        "/* a\n b */ #include <cub/cub.cuh>",
        "#/* a */include <cub/cub.cuh>",
        "#include /* a */ <cub/cub.cuh>",
        "# /* a\n b */ include <cub/cub.cuh>",
        "#inc??/\nlude <cub/cub.cuh>",
        "const char* a = R\"x(\" /*)x\";\n#include <cub/cub.cuh>\n",
    ] {
        let error = check(source, &Context::default()).unwrap_err();
        assert!(
            matches!(error, IncludeError::Outside { .. }),
            "{source}: {error}"
        );
    }
}

#[test]
fn other_ways_to_read_a_file_are_refused() {
    for source in [
        "#define H <cub/cub.cuh>\n#include H",
        "#include_next <x.h>",
        "#embed \"/etc/passwd\"",
        "#if __has_include(\"/etc/passwd\")\n#endif",
        "asm(\".incbin \\\"/etc/passwd\\\"\");",
    ] {
        let error = check(source, &Context::default()).unwrap_err();
        assert!(
            matches!(error, IncludeError::Directive { .. }),
            "{source}: {error}"
        );
    }
}

#[test]
fn no_macro_of_a_condition_forms_an_operator() {
    for source in [
        "#define Q __has_inc ## lude\n#if Q(\"/etc/passwd\")\n#endif",
        "#define CAT(a, b) a##b\n#define F \"/etc/passwd\"\n#if CAT(__has_inc, lude)(F)\n#endif",
        "#define CAT(a, b) a %:%: b\n#if 0\n#elif CAT(__has_inc, lude)(<a>)\n#endif",
        "#if _CCCL_HAS_INCLUDE(<a>)\n#endif",
        "#define W(x) x\n#if W(_CCCL_HAS_INCLUDE)(<a>)\n#endif",
        "#define Q __has_inc ## lude\nconst char* a = R\"x(\" /*)x\";\n#if '//' && Q(<a>)\n#endif",
    ] {
        let error = check(source, &Context::default()).unwrap_err();
        assert!(
            matches!(error, IncludeError::Condition { .. }),
            "{source}: {error}"
        );
    }
    let pasted = with_macro("PX", &["__has_inc ## lude"]);
    assert!(check("#if PX(<a>)\n#endif", &pasted).is_err());
}

#[test]
fn conditions_of_usual_sources_are_allowed() {
    let source = "#if defined(OTHER) && !defined OTHER // so what\n#endif\n#ifdef NAME\n#endif\n\
                  #define EVEN(x) ((x) % 2 == 0)\n#if EVEN(BLOCK) && __CUDA_ARCH__ >= 900u /* new */\n#elif N > 0x1F\n#endif\n\
                  #define JOIN(a, b) a##b\nint JOIN(x, 1) = 1'000;\n";
    let mut context = with_macro("BLOCK", &[]);
    context.macros.insert("N".to_owned(), Vec::new());
    assert_eq!(check(source, &context), Ok(()));
}

#[test]
fn a_value_of_a_parameter_is_one_line_that_reads_no_file() {
    for value in [
        "__has_include",
        "#include <a>",
        "1\n#include <a>",
        "a\0b",
        ".incbin",
    ] {
        let error = check("", &with_macro("PX", &["float", value])).unwrap_err();
        assert!(
            matches!(error, IncludeError::Value { .. }),
            "{value}: {error}"
        );
    }
    assert_eq!(check("", &with_macro("PX", &["float", "a + b"])), Ok(()));
}

#[test]
fn lines_are_those_of_files_that_the_parent_names() {
    let parent = "#line 3 \"a.cu\"\n";
    let context = Context {
        line_files: line_files(parent),
        ..Context::default()
    };
    assert_eq!(check("#line 9 \"a.cu\"\n#line 5\n", &context), Ok(()));
    for source in [
        "#line 1 \"/etc/shadow\"",
        "# 1 \"/etc/shadow\"",
        "#define L 1 \"/etc/shadow\"\n#line L",
    ] {
        let error = check(source, &context).unwrap_err();
        assert!(
            matches!(error, IncludeError::Line { .. }),
            "{source}: {error}"
        );
    }
}

#[test]
fn every_shipped_template_is_allowed() {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut checked = 0;
    for entry in std::fs::read_dir(folder.join("search_spaces")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|ending| ending != "yaml") || name.starts_with('_') {
            continue;
        }
        let space =
            crate::space_change::document(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let source = path.with_file_name(space["source"].as_str().unwrap());
        let source = std::fs::read_to_string(source).unwrap();
        let headers: Vec<&str> = source
            .lines()
            .filter_map(|line| named(line.strip_prefix("#include")?.trim()))
            .collect();
        let texts = headers.iter().filter_map(|header| {
            let path = folder
                .join("templates")
                .join(header.trim_start_matches("../"));
            std::fs::read_to_string(path).ok()
        });
        let context = Context {
            header_texts: texts.collect(),
            macros: crate::space_change::macros(&space),
            ..with_headers(&headers)
        };
        assert_eq!(check(&source, &context), Ok(()), "{name}");
        checked += 1;
    }
    assert!(checked > 10, "{checked}");
}

#[test]
fn comments_and_blank_lines_are_no_change() {
    let source = "int a; // one\n\n  /* two\n */ int b;\n";
    assert!(is_same_code(source, "int a;\nint b; // three\n"));
    assert!(!is_same_code(source, "int a;\nint c;\n"));
}
