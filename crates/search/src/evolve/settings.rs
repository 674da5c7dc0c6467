//! Settings of `evolve`, including the switches for ablation studies.

tuner_core::with_defaults! {
    /// Settings of `evolve`. The defaults were selected by cross-validation over recorded spaces;
    /// `docs/evidence/search.md` has the study.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Settings {
        /// Configurations of the opening, before the model selects.
        pub opening: usize = 7,
        /// Configurations of the opening that are typical of the space; the others are far apart.
        pub typical: usize = 2,
        /// Uniform draws per typical configuration.
        pub typical_draws: usize = 40,
        /// Uniform draws per distant configuration.
        pub opening_draws: usize = 30,
        /// Number of fastest configurations that provide parents and neighbours.
        pub elites: usize = 16,
        /// Number of elites that add all their neighbours to a new pool.
        pub near_elites: usize = 10,
        /// Largest number of neighbours per elite.
        pub near_each: usize = 64,
        /// Uniform draws in a new pool.
        pub pool_uniform: usize = 150,
        /// Children of elites in a new pool.
        pub pool_bred: usize = 100,
        /// Uniform draws added to the pool at each proposal.
        pub join_uniform: usize = 4,
        /// Children of elites added to the pool at each proposal.
        pub join_bred: usize = 4,
        /// Pool size above which candidates with low scores are dropped.
        pub pool_limit: usize = 800,
        /// Largest number of results in the model.
        pub model_limit: usize = 400,
        /// Largest number of results for a fit of the length scales.
        pub fit_limit: usize = 150,
        /// Steps of a fit; 0 keeps the prior length scales.
        pub fit_steps: usize = 10,
        /// Growth factor of the number of results after which the model is fitted again.
        pub fit_growth: f64 = 1.15,
        /// Compression factor of log times above the median: differences among slow candidates are
        /// irrelevant.
        pub slack: f64 = 0.5,
        /// Adds the exponent of two of a value as a coordinate.
        pub alignment: bool = true,
        /// Adds a separate coordinate for each value of a short ordered parameter.
        pub apart: bool = true,
        /// Initial increase of the log length scales of these coordinates: few results cannot distinguish
        /// single values.
        pub apart_doubt: f64 = 2.0,
        /// Number of results at which this increase has decayed to 0, linearly.
        pub apart_after: usize = 50,
        /// Predicts failures.
        pub failures: bool = true,
        /// Typical log length scale, without half the logarithm of the number of dimensions.
        pub log_length: f64 = -0.5,
        /// Share of proposals drawn uniformly.
        pub explore: f64 = 0.03,
        /// Share of the fitted noise, without the measurement error, that counts as variance between
        /// configurations: it is reproducible, so a candidate can gain by it.
        pub luck: f64 = 1.0,
        /// Results since the last gain from which a second, independent search alternates
        /// with the first.
        pub second_after: usize = 60,
        /// Period of the second search's turns, in proposals.
        pub second_every: usize = 2,
        /// Number of results from which candidates are ranked by the lower confidence bound of
        /// their time instead of expected improvement. The bound explores less.
        pub bound_from: usize = usize::MAX,
        /// Largest number of first trials from prior knowledge: one per source, at least two.
        pub first: usize = 3,
        /// Standard deviation of the sources' common error for the choice of the first trials, as a
        /// share of a source's spread.
        pub first_doubt: f64 = 0.3,
        /// Standard deviation of a source's weight, in signal standard deviations per
        /// spread of the source.
        pub doubt: f64 = 0.5,
        /// Number of results before which prior knowledge is always used.
        pub doubt_after: usize = 8,
        /// Consecutive results from prior knowledge without a gain before it is in doubt.
        pub patience: usize = 4,
        /// Distant configurations tried at the first doubt, in place of the skipped opening.
        pub spread: usize = 6,
        /// Rank correlation with the results from which a source orders them well: distant
        /// configurations are then skipped.
        pub orders_well: f64 = 0.8,
        /// Initial log odds of using prior knowledge once it is in doubt.
        pub trust: f64 = 1.0,
        /// Largest change of these odds by the likelihood of the results.
        pub most_odds: f64 = 2.0,
        /// Decrease of these odds for each result from prior knowledge since the last gain; less if
        /// a source orders the results.
        pub impatience: f64 = 1.0,
        /// Share of this decrease that each other result since the last gain restores.
        pub second_chance: f64 = 0.1,
        /// Rank correlation with the results below which a source counts as uncorrelated.
        pub says_something: f64 = 0.3,
        /// Number of best configurations of all sources in a new pool.
        pub pool_known: usize = 60,
        /// Standard deviations between the mean and the lower confidence bound.
        pub deviations: f64 = 2.5,
    }
}
