//! `tuner report`: the files, from every kind of database.

use crate::program::words;
use crate::report::support::{edit, project, run, tune, write};
use std::path::{Path, PathBuf};

fn report(folder: &Path, more: &[&str]) -> (String, String) {
    let mut arguments = vec!["report", "--db", "t.db", "-o", "out"];
    arguments.extend(more);
    run(folder, &arguments, 0);
    let read = |name: &str| std::fs::read_to_string(folder.join("out").join(name));
    (
        read("report.md").expect("Markdown"),
        read("report.html").expect("HTML"),
    )
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded")
}

#[test]
fn a_report_of_the_virtual_gpu_has_every_section_and_is_the_same_each_time() {
    let folder = project();
    let folder = folder.path();
    let all = words("run scale --device vgpu:a100 --evals 16 --db t.db");
    run(folder, &all, 0);
    let (md, html) = report(folder, &["--gpu-price", "0.75"]);
    for title in [
        "Problems",
        "Best configurations",
        "Convergence",
        "Roofline",
        "Effects of the parameters",
        "Ablation",
        "Hazards and failures met",
        "What limits the winner",
        "The winner against the default",
        "How to reproduce",
        "GPU hours and their price",
        "Provenance",
    ] {
        assert!(md.contains(title) && html.contains(title), "{title}");
    }
    for fact in [
        "speed-up",
        "default configuration",
        "predicted",
        "bank conflicts",
        "race",
        "kernel.cu:9",
        "The three main bottlenecks",
        "at 0.75 an hour",
        "+#define PAD 1",
        "tuner run scale --device vgpu:a100",
        "far from the roofline: ",
    ] {
        assert!(md.contains(fact) || html.contains(fact), "{fact}\n{md}");
    }
    // One file that needs nothing else, and nothing of a value becomes markup.
    assert!(html.contains("<svg") && html.contains("prefers-color-scheme"));
    for foreign in ["http://", "https://", "<script", "<link", "<in>", "@import"] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    assert!(html.contains("&lt;in&gt; one &amp; two"));
    // Every plot that the Markdown names is there, as a drawing of its own.
    let plots: Vec<&str> = md
        .split("](plots/")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect();
    assert!(plots.len() >= 8, "{plots:?}");
    for plot in plots {
        let svg = std::fs::read_to_string(folder.join("out/plots").join(plot)).expect("the plot");
        assert!(
            svg.starts_with("<svg") && svg.contains("xmlns=") && svg.contains("<style>"),
            "{plot}"
        );
        let (open, close) = (svg.matches("<text").count(), svg.matches("</text>").count());
        assert_eq!(open, close);
    }
    assert_eq!(report(folder, &["--gpu-price", "0.75"]), (md, html));
}

#[test]
fn ablation_predicts_what_was_not_judged_and_stale_results_are_marked() {
    let folder = project();
    let folder = folder.path();
    tune(folder, "1");
    let (md, _) = report(folder, &["--ablate"]);
    let row = md
        .lines()
        .find(|line| line.starts_with("| `SYNC`") && line.contains("→"));
    assert!(
        row.is_some_and(|row| row.contains("1 → 0") && row.contains("race")),
        "{md}"
    );
    edit(folder, "// later");
    let (md, html) = report(folder, &[]);
    assert!(md.contains("stale: the template was edited") && html.contains("stale"));
    assert!(md.contains("No source to show: the template was edited since"));
}

#[test]
fn a_report_of_a_recorded_file_says_what_is_recorded_and_what_is_not_known() {
    let Some(file) = std::fs::read_dir(recorded())
        .ok()
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().ends_with(".json.gz"))
    else {
        return eprintln!("skipped: no recorded file in tests/data/recorded");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let device = format!("replay:{}", file.display());
    run(
        folder.path(),
        &["run", "--device", &device, "--evals", "20", "--db", "t.db"],
        0,
    );
    let (md, html) = report(folder.path(), &["--gpu-price", "2"]);
    for fact in [
        "recorded",
        "Recorded times were measured by others",
        "No roofline",
        "recorded results carry no counters",
        "a recorded file has none",
        "tuner run --device",
        "recorded compile and benchmark time",
    ] {
        assert!(md.contains(fact), "{fact}\n{md}");
    }
    assert!(html.contains("recorded"));
}

#[test]
fn what_cannot_be_reported_is_answered() {
    let folder = project();
    let folder = folder.path();
    let (_, told) = run(folder, &["report", "--db", "none.db"], 2);
    assert!(told.contains("none.db"), "{told}");
    tune(folder, "1");
    let (_, told) = run(folder, &["report", "stranger", "--db", "t.db"], 2);
    assert!(told.contains("it has `scale`"), "{told}");
    let (_, told) = run(
        folder,
        &["report", "--db", "t.db", "--gpu-price", "free"],
        2,
    );
    assert!(told.contains("0.75"), "{told}");
    write(folder, "file", "");
    let (_, told) = run(folder, &["report", "--db", "t.db", "-o", "file"], 2);
    assert!(told.contains("cannot be written"), "{told}");
    // A damaged search space beside it does not keep the results from being reported.
    write(folder, "search_spaces/scale.yaml", "version: [");
    run(folder, &["report", "--db", "t.db", "-o", "out"], 0);
}
