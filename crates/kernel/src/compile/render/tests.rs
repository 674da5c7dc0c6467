use super::{Source, render};
use crate::compile::Template;
use tuner_core::value::Value;

fn source(macros: &[(&str, Value)], text: &str, options: &[&str]) -> Source {
    let template = Template::new("templates/t/kernel.cu", text, Vec::new(), Vec::new());
    let macros: Vec<_> = macros
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    let options: Vec<_> = options.iter().map(ToString::to_string).collect();
    render(&template, &macros, &options, &[], "sm_90")
}

#[test]
fn macros_come_first_and_the_template_keeps_its_own_lines() {
    let macros = [
        ("BM", Value::Int(64)),
        ("FAST", Value::Bool(true)),
        ("SCALE", Value::Float(1.0)),
        ("TYPE", Value::Text("unsigned int".into())),
    ];
    insta::assert_snapshot!(source(&macros, "int x;\n", &[]).text, @r#"
        #define BM 64
        #define FAST 1
        #define SCALE 1.0
        #define TYPE unsigned int
        #line 1 "templates/t/kernel.cu"
        int x;
        "#);
}

#[test]
fn options_are_ours_then_the_users() {
    insta::assert_snapshot!(source(&[], "", &["--use_fast_math"]).options.join("\n"), @r"
        --gpu-architecture=sm_90
        --std=c++17
        -lineinfo
        --ptxas-options=-v
        --use_fast_math
        ");
}

#[test]
fn a_users_standard_and_target_replace_ours() {
    let source = source(&[], "", &["-std=c++20", "-arch=sm_90a"]);
    assert_eq!(source.arch, "sm_90a");
    insta::assert_snapshot!(source.options.join("\n"), @r"
        -lineinfo
        --ptxas-options=-v
        -std=c++20
        -arch=sm_90a
        ");
}

#[test]
fn identity_follows_content_options_and_compiler() {
    let base = source(&[("A", Value::Int(1))], "int x;", &[]);
    let same = source(&[("A", Value::Int(1))], "int x;", &[]);
    assert_eq!(base.identity("13.0"), same.identity("13.0"));
    assert_ne!(base.identity("13.0"), base.identity("12.9"));
    for other in [
        source(&[("A", Value::Int(2))], "int x;", &[]),
        source(&[("A", Value::Int(1))], "int y;", &[]),
        source(&[("A", Value::Int(1))], "int x;", &["-G"]),
    ] {
        assert_ne!(base.identity("13.0"), other.identity("13.0"));
    }
}
