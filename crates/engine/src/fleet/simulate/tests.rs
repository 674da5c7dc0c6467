use super::*;
use std::path::Path;

#[test]
fn more_gpus_find_it_sooner_and_one_is_as_fast_as_its_own_work() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let file = root.join("tests/data/recorded/convbat_RTX3090.json.gz");
    let recording = Recording::load(&file).unwrap();
    let mean = |gpus: usize| {
        let times = (1..=6).map(|seed| simulate(&recording, "random", seed, gpus).unwrap());
        let times: Vec<Search> = times.collect();
        assert!(times.iter().all(|search| search.utilisation <= 1.0));
        times
            .iter()
            .filter_map(|search| search.found_us)
            .sum::<u64>()
            / 6
    };
    let (one, eight) = (mean(1), mean(8));
    assert!(eight * 3 < one, "{one} {eight}");
    assert!(eight * 16 > one, "{one} {eight}");
    let twice = simulate(&recording, "evolve", 3, 4).unwrap();
    assert_eq!(simulate(&recording, "evolve", 3, 4).unwrap(), twice);
}
