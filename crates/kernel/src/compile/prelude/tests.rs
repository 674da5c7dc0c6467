use super::{Preludes, Resolver, first_includes, included};
use crate::compile::render::{Source, render};
use crate::compile::request::Request;
use crate::compile::template::{Header, Template};
use std::path::PathBuf;
use tuner_core::value::Value;

/// Folders of CUDA's headers and of a project, with one library.
struct Folders {
    _root: tempfile::TempDir,
    cuda: PathBuf,
    project: PathBuf,
}

fn folders() -> Folders {
    let root = tempfile::tempdir().unwrap();
    let [cuda, project] = ["cuda", "project"].map(|name| root.path().join(name));
    std::fs::create_dir_all(cuda.join("lib")).unwrap();
    std::fs::create_dir_all(&project).unwrap();
    let write = |name: &str, text: &str| std::fs::write(cuda.join(name), text).unwrap();
    write(
        "lib.h",
        "// BLOCK is not a word of this file.\n#include \"lib/detail.h\"\n#include <stdint.h>\n\
         #ifdef _MSC_VER\n#include <intrin.h>\n#endif\n",
    );
    write(
        "lib/detail.h",
        "#include \"beside.h\"\ntemplate <int ITEMS> struct Tile;\n",
    );
    write("lib/beside.h", "#define BESIDE 1\n");
    write("odd.h", "#include WHO_KNOWS\n");
    Folders {
        _root: root,
        cuda,
        project,
    }
}

fn source(text: &str, macros: &[&str]) -> Source {
    let template = Template::new("k.cu", text, Vec::new(), Vec::new());
    let macros: Vec<_> = macros
        .iter()
        .map(|name| ((*name).to_owned(), Value::Int(4)))
        .collect();
    render(&template, &macros, &[], &[], "sm_80")
}

/// Returns the prelude of the third of three compiles of a source.
fn prelude(folders: &Folders, source: &Source, headers: &[Header]) -> String {
    let request = Request {
        text: source.text.clone(),
        names: Vec::new(),
        headers: headers.to_vec(),
        options: source.options.clone(),
        folders: vec![folders.project.clone(), folders.cuda.clone()],
        expressions: Vec::new(),
        linked_folders: Vec::new(),
        prelude: String::new(),
    };
    let preludes = Preludes::default();
    let own = std::slice::from_ref(&folders.cuda);
    assert_eq!(
        preludes.of(source, &request, own),
        "",
        "the first is compiled as it is"
    );
    let second = preludes.of(source, &request, own);
    assert_eq!(preludes.of(source, &request, own), second);
    second
}

#[test]
fn the_libraries_that_come_first_are_the_prelude() {
    let folders = folders();
    let text = "// A kernel.\n#pragma once\n#include <cstdio>\n# include \"lib.h\" /* tiles */\n\n\
                #define X\n#include <lib/beside.h>\n";
    let source = source(text, &["BLOCK"]);
    assert_eq!(
        prelude(&folders, &source, &[]),
        "#include <cstdio>\n#include <lib.h>\n"
    );
}

#[test]
fn a_library_that_mentions_a_parameter_comes_after_the_parameters() {
    let folders = folders();
    let text = "#include <lib.h>\n";
    for name in ["ITEMS", "_MSC_VER", "BESIDE"] {
        assert_eq!(
            prelude(&folders, &source(text, &["BLOCK", name]), &[]),
            "",
            "{name}"
        );
    }
    // The block follows the text before it.
    let mut first = source(text, &["ITEMS"]);
    first.text.insert_str(0, "#include <lib.h>\n");
    assert_eq!(prelude(&folders, &first, &[]), "#include <lib.h>\n");
}

#[test]
fn files_of_the_project_are_read_with_each_candidate() {
    let folders = folders();
    let source = source("#include <lib.h>\n", &["BLOCK"]);
    let shadow = |name: &str| Header {
        spelled: name.to_owned(),
        path: name.to_owned(),
        text: String::new(),
    };
    for name in ["lib.h", "stdint.h"] {
        assert_eq!(prelude(&folders, &source, &[shadow(name)]), "", "{name}");
    }
    std::fs::write(folders.project.join("lib.h"), "").unwrap();
    assert_eq!(prelude(&folders, &source, &[]), "");
}

#[test]
fn what_cannot_be_told_and_what_is_short_is_no_prelude() {
    let folders = folders();
    for text in [
        "#include <odd.h>\n",
        "#include <cstdio>\n",
        "#include <missing.h>\n",
        "#include <../cuda/lib.h>\n",
        "int x;\n#include <lib.h>\n",
    ] {
        assert_eq!(prelude(&folders, &source(text, &[]), &[]), "", "{text}");
    }
    assert_eq!(first_includes("#if 1\n#include <lib.h>\n#endif\n"), [""; 0]);
    let defined = "#define FILE <lib.h>\n#include FILE\n";
    assert_eq!(included(defined), Some(vec![("lib.h".to_owned(), false)]));
    for unknown in ["FILE", "NAME(lib.h)", "<lib.h", ""] {
        assert_eq!(
            included(&format!("#include {unknown}\n")),
            None,
            "{unknown}"
        );
    }
    assert_eq!(included("# include_next <lib.h>\n"), None);
}

#[test]
fn words_are_those_of_all_files_without_comments() {
    let folders = folders();
    let all = [folders.cuda.clone()];
    let resolver = Resolver {
        folders: &all,
        own: &all,
        headers: &[],
    };
    let words = resolver.words("#include <lib.h>\n").unwrap();
    for word in ["ITEMS", "BESIDE", "_MSC_VER", "uint32_t"] {
        assert!(words.contains(word), "{word}");
    }
    assert!(!words.contains("BLOCK"));
}

#[test]
fn options_that_never_return_are_not_worth_a_prelude() {
    let folders = folders();
    let preludes = Preludes::default();
    let own = std::slice::from_ref(&folders.cuda);
    let source = source("#include <lib.h>\n", &[]);
    for number in 0..20 {
        let request = Request {
            text: source.text.clone(),
            names: Vec::new(),
            headers: Vec::new(),
            options: vec![format!("-DN={}", number % 10)],
            folders: own.to_vec(),
            expressions: Vec::new(),
            linked_folders: Vec::new(),
            prelude: String::new(),
        };
        assert_eq!(preludes.of(&source, &request, own), "", "{number}");
    }
}
