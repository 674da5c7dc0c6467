use super::*;
use tuner_core::units::Micros;
use tuner_core::value::Value;
use tuner_space::{Environment, Parameter};

fn space(values: i64, parameters: usize) -> Space {
    let values: Vec<Value> = (1..=values).map(Value::Int).collect();
    let named = (0..parameters).map(|at| Parameter::new(format!("p{at}"), values.clone()));
    Space::build("made up", named.collect(), &[], &Environment::default()).unwrap()
}

fn time(config: &Config) -> f64 {
    let far = config.choices().iter().map(|at| f64::from(at.abs_diff(6)));
    10.0 + far.sum::<f64>()
}

fn surveyed(space: &Space, seed: u64) -> Vec<Config> {
    let start = Config::new(vec![0; space.parameters().len()]);
    let mut survey = Survey::new(space, Seed(seed), &[start]);
    let mut all = Vec::new();
    loop {
        let round = survey.round();
        if round.is_empty() {
            return all;
        }
        let told = round.iter().map(|config| match Micros::new(time(config)) {
            Some(time) => Observation::exactly(time),
            None => Observation::Unknown,
        });
        survey.tell(told.collect::<Vec<_>>());
        all.extend(round);
    }
}

#[test]
fn a_survey_spreads_and_then_looks_where_it_is_fast() {
    let all = surveyed(&space(9, 6), 1);
    assert_eq!(all.len(), MAX_CONFIGS);
    assert_eq!(all[0].choices(), [0; 6]);
    let different: HashSet<&Config> = all.iter().collect();
    assert_eq!(different.len(), MAX_CONFIGS);
    let mean = |part: &[Config]| part.iter().map(time).sum::<f64>() / part.len() as f64;
    let best = |part: &[Config]| part.iter().map(time).fold(f64::INFINITY, f64::min);
    let (spread, searched) = all.split_at(SPREAD_CONFIGS);
    assert!(mean(searched) < mean(spread) - 4.0);
    assert!(best(searched) < best(spread) - 2.0);
}

#[test]
fn the_same_seed_surveys_the_same_and_a_small_space_whole() {
    let small = space(4, 2);
    assert_eq!(surveyed(&small, 1).len(), 16);
    let large = space(9, 6);
    assert_eq!(surveyed(&large, 3), surveyed(&large, 3));
}
