//! Good mutators: what becomes of their changes, and where it is shown.

use super::{FAST, HELPER, KERNEL, SPACE, changes, evolve, lineages, project, python, with_source};
use crate::program::run;

#[test]
fn a_faster_source_is_predicted_better_and_never_accepted_on_a_virtual_gpu() {
    let folder = project();
    let folder = folder.path();
    let before = run(
        folder,
        "run space.yaml --device vgpu:h100 --evals 2 --db t.db",
    );
    assert_eq!(before.code, 0, "{}", before.stderr);
    let board = || run(folder, "leaderboard scale --db t.db --format csv").stdout;
    let shipped = board();
    let mutator = with_source(folder, FAST);
    let ended = evolve(folder, &mutator, &["--rounds", "1", "-o", "better"]);
    ended.says(
        0,
        &[
            "change 1 of shipped | other source: predicted better",
            "wrote better/scale-1.cu",
        ],
    );
    let all = changes(folder);
    assert_eq!(all[0]["outcome"], "predicted_better");
    assert_eq!(all[0]["verdict"], "ok");
    let time = &all[0]["times"][0];
    assert!(
        time["shipped_us"].as_f64() > time["time_us"].as_f64(),
        "{time}"
    );
    assert!(
        all[0]["diff"]
            .as_str()
            .unwrap()
            .contains("+    if (i < N) y[i] = 2.5f * x[i];")
    );
    // The leaderboard is of the template in the project.
    assert_eq!(board(), shipped);
    let figures = &lineages(folder)[0]["figures"];
    assert_eq!(figures["shares"]["predicted_better"], 1.0);
    assert!(
        figures["fast_p"].is_null(),
        "a predicted time has no baseline"
    );
    let table = run(folder, "leaderboard scale --lineage --db t.db").stdout;
    assert!(
        table.contains("* 1 other source: predicted better: main"),
        "{table}"
    );
    let report = run(folder, "report scale --db t.db -o out --no-profile");
    assert_eq!(report.code, 0, "{}", report.stderr);
    let markdown = std::fs::read_to_string(folder.join("out/report.md")).unwrap();
    assert!(markdown.contains("Changes of the code") && markdown.contains("other source"));
    let written = std::fs::read_to_string(folder.join("better/scale-1.cu")).unwrap();
    assert_eq!(written, FAST);
}

#[test]
fn a_wrong_kernel_fails_with_its_verdict_and_line() {
    let folder = project();
    let folder = folder.path();
    for (source, verdict) in [
        (FAST.replace("i < N", "i <= N"), "out_of_bounds"),
        (FAST.replace("2.5f", "2.51f"), "incorrect"),
        (FAST.replace("2.5f * x[i]", "nothing"), "compile_failed"),
    ] {
        let mutator = with_source(folder, &source);
        let ended = evolve(folder, &mutator, &["--rounds", "1"]);
        ended.says_of(&verdict, 3, &[&format!("failed ({verdict})")]);
        let all = changes(folder);
        assert_eq!(all[0]["verdict"], verdict);
    }
    let detail = changes(folder)[0]["detail"].to_string();
    assert!(detail.contains("kernel.cu"), "{detail}");
}

#[test]
fn the_same_code_is_unchanged() {
    let folder = project();
    let folder = folder.path();
    let body = "print(json.dumps({'id': request['id'], 'source': request['parent']['source'] + '// end\\n'}))";
    let mutator = python(folder, "same.py", body);
    let ended = evolve(folder, &mutator, &["--rounds", "1"]);
    ended.says(3, &["unchanged: the machine code is the parent's"]);
}

#[test]
fn a_change_of_a_path_that_the_best_configuration_does_not_use_counts() {
    let folder = project();
    let folder = folder.path();
    let kernel = format!("{HELPER}{KERNEL}");
    let slower = kernel.replace("pass < 400", "pass < (BLOCK == 64 ? 400 : 800)");
    crate::program::write(folder, "kernel.cu", &slower);
    let mutator = with_source(folder, &slower.replace("800", "1"));
    evolve(folder, &mutator, &["--rounds", "1"]).says(0, &["predicted better"]);
    // The path without use is slower still: tuning finds the parent's best configuration.
    let mutator = with_source(folder, &slower.replace("800", "900"));
    evolve(folder, &mutator, &["--rounds", "1"]).says(
        3,
        &["unchanged: the machine code of the best configurations"],
    );
}

#[test]
fn narrowed_values_drop_the_seeds_that_have_others() {
    let folder = project();
    let folder = folder.path();
    let space = format!("{SPACE}seeds: [{{ BLOCK: 64 }}]\n");
    crate::program::write(folder, "space.yaml", &space);
    crate::program::write(folder, "fast.cu", FAST);
    let body = "
space = {'parameters': {'BLOCK': {'values': [128], 'default': 128}}}
print(json.dumps({'id': request['id'], 'source': open('fast.cu').read(), 'space': space}))";
    let mutator = python(folder, "narrow.py", body);
    evolve(folder, &mutator, &["--rounds", "1"]).says(0, &["predicted better"]);
    let detail = changes(folder)[0]["detail"].to_string();
    assert!(
        detail.contains("a seed with BLOCK = 64 is dropped"),
        "{detail}"
    );
}

#[test]
fn a_written_space_names_the_source_that_is_written_with_it() {
    let folder = project();
    let folder = folder.path();
    let mutator = with_source(folder, FAST);
    evolve(folder, &mutator, &["--rounds", "1", "-o", "better"]).says(0, &["wrote"]);
    let checked = run(folder, "check better/scale-1.json --device vgpu:h100");
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    let text = std::fs::read_to_string(folder.join("better/scale-1.json")).unwrap();
    assert!(text.contains("\"source\": \"scale-1.cu\""), "{text}");
}

#[test]
fn a_written_space_finds_its_data_and_programs_from_another_folder() {
    let folder = project();
    let folder = folder.path();
    let space = SPACE.replace(
        "{ uniform: { min: 0, max: 1 } }",
        "{ file: \"data-{problem}.bin\" }",
    );
    let space = space.replace(
        &SPACE[SPACE.find("reference:").unwrap()..],
        "reference: { values: { y: \"right-{problem}.bin\" } }\nbaseline: { command: [python3, time.py, --fast] }\n",
    );
    crate::program::write(folder, "space.yaml", &space);
    crate::program::write(folder, "time.py", "print('{\"time_us\": 5}')\n");
    for (problem, count) in [("main", 4096_u16), ("ragged", 1003), ("short", 5)] {
        let data = (0..count).map(f32::from);
        let bytes = |factor: f32| -> Vec<u8> {
            data.clone()
                .flat_map(|x| (factor * x).to_le_bytes())
                .collect()
        };
        std::fs::write(folder.join(format!("data-{problem}.bin")), bytes(1.0)).unwrap();
        std::fs::write(folder.join(format!("right-{problem}.bin")), bytes(2.5)).unwrap();
    }
    let mutator = with_source(folder, FAST);
    evolve(folder, &mutator, &["--rounds", "1", "-o", "better"]).says(0, &["wrote"]);
    let checked = run(folder, "check better/scale-1.json --device vgpu:h100");
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    let text = std::fs::read_to_string(folder.join("better/scale-1.json")).unwrap();
    for name in ["data-{problem}.bin", "right-{problem}.bin", "time.py"] {
        let name = folder.join(name);
        assert!(text.contains(&*name.to_string_lossy()), "{text}");
    }
    assert!(text.contains("\"--fast\""), "{text}");
}

#[test]
fn blocks_a_diff_and_the_space_change_the_kernel() {
    let folder = project();
    let folder = folder.path();
    let body = "
blocks = '<<<<<<< SEARCH\\n    for (int pass = 0; pass < 400; ++pass) v = v * 1.0000001f;\\n=======\\n    for (int pass = 0; pass < PASSES; ++pass) v = v * 1.0000001f;\\n>>>>>>> REPLACE\\n'
space = {'parameters': {'PASSES': {'values': [0, 4], 'default': 4, 'doc': 'passes'}}, 'seeds': [{'PASSES': 0}]}
print(json.dumps({'id': request['id'], 'blocks': blocks, 'space': space, 'note': 'fewer passes', 'usage': {'tokens': 500, 'cost': 0.25}}))";
    let mutator = python(folder, "blocks.py", body);
    let ended = evolve(folder, &mutator, &["--rounds", "1"]);
    ended.says(0, &["fewer passes: predicted better"]);
    let all = lineages(folder);
    assert_eq!(all[0]["changes"][0]["tokens"], 500);
    assert_eq!(all[0]["changes"][0]["cost"], 0.25);
    assert!(all[0]["figures"]["gain_per_1000_tokens"].as_f64().unwrap() > 0.0);
    let config = &all[0]["changes"][0]["times"][0]["config"];
    assert!(config["PASSES"].is_number(), "{config}");
}

#[test]
fn a_person_answers_by_a_file() {
    let folder = project();
    let folder = folder.path();
    let path = folder.to_owned();
    let person = std::thread::spawn(move || {
        let request = path.join("asked/request-1.json");
        while !request.exists() {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let text = std::fs::read_to_string(path.join("asked/scale-1.cu")).unwrap();
        let edited = text.replace("pass < 400", "pass < 1");
        std::fs::write(path.join("asked/scale-1.done.cu"), edited).unwrap();
    });
    let ended = evolve(folder, "manual", &["--rounds", "1", "--folder", "asked"]);
    person.join().unwrap();
    ended.says(
        0,
        &[
            "waiting for asked/answer-1.json",
            "edited by hand: predicted better",
        ],
    );
}

#[test]
fn scripted_changes_are_those_of_the_seed() {
    let folder = project();
    let folder = folder.path();
    let notes = |db: &str| {
        let command = [
            "evolve",
            "space.yaml",
            "--mutator",
            "scripted",
            "--device",
            "vgpu:h100",
            "--evals",
            "2",
            "--base-evals",
            "2",
            "--rounds",
            "2",
            "--seed",
            "5",
            "--db",
            db,
        ];
        let ended = crate::program::ended(crate::program::tuner(folder).args(command));
        assert!([0, 3].contains(&ended.code), "{}", ended.stderr);
        let lines = ended
            .stderr
            .lines()
            .filter(|line| line.starts_with("round "));
        lines.map(str::to_owned).collect::<Vec<String>>()
    };
    let first = notes("a.db");
    assert_eq!(first.len(), 2);
    assert_eq!(first, notes("b.db"));
}

#[test]
fn sizes_that_no_file_names_are_checked_too() {
    let folder = project();
    let folder = folder.path();
    // Right on the timed problem and on both check problems of the file.
    let known = "(N == 4096 || N == 1003 || N == 5 ? 2.5f : 1.0f)";
    let mutator = with_source(folder, &FAST.replace("2.5f", known));
    crate::program::write(folder, "kernel.cu", &FAST.replace("2.5f", known));
    let declared = run(folder, "check space.yaml --device vgpu:h100 --format json");
    assert_eq!(declared.code, 0, "{}", declared.stderr);
    let shipped = project();
    std::fs::copy(shipped.path().join("kernel.cu"), folder.join("kernel.cu")).unwrap();
    let ended = evolve(folder, &mutator, &["--rounds", "1"]);
    ended.says(3, &["failed (incorrect)", "problem drawn"]);
}
