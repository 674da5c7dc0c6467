//! The constants of `evolve`, in one place, and the switches of its parts.

tuner_core::with_defaults! {
    /// How `evolve` searches. The values were chosen by cross-validation over recorded spaces;
    /// `docs/search.md` has the study.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Settings {
        /// Configurations tried before the model is asked.
        pub opening: usize = 7,
        /// How many of these are typical of the space; the others are far apart.
        pub typical: usize = 2,
        /// Draws among which each of the former is the most typical one.
        pub typical_draws: usize = 40,
        /// Draws among which each of the latter is the farthest from those before it.
        pub opening_draws: usize = 30,
        /// Fastest configurations that lend parents and neighbours.
        pub elites: usize = 16,
        /// Of these, how many bring all their neighbours into a new pool of candidates.
        pub near_elites: usize = 10,
        /// Most neighbours one elite brings.
        pub near_each: usize = 64,
        /// Uniform draws in a new pool.
        pub pool_uniform: usize = 150,
        /// Children of elites in a new pool.
        pub pool_bred: usize = 100,
        /// Uniform draws that join the pool at each proposal.
        pub join_uniform: usize = 4,
        /// Children of elites that join the pool at each proposal.
        pub join_bred: usize = 4,
        /// Candidates beyond which the less promising are dropped.
        pub pool_limit: usize = 800,
        /// Most results the model holds.
        pub model_limit: usize = 400,
        /// Most results the length scales are fitted to.
        pub fit_limit: usize = 150,
        /// Steps of a fit; none keeps the prior's length scales.
        pub fit_steps: usize = 10,
        /// The model is refitted when the results have grown by this factor.
        pub fit_growth: f64 = 1.15,
        /// What is left of the distance to the median beyond it: slow ones need not be told apart.
        pub slack: f64 = 0.5,
        /// Whether the model knows how often two divides a value.
        pub alignment: bool = true,
        /// Whether the model tells the values of an ordered parameter apart beside their order.
        pub apart: bool = true,
        /// How much longer the log length scales of that are believed to be before any result: few
        /// results say nothing of single values.
        pub apart_doubt: f64 = 2.0,
        /// Results at which this belief has gone, in proportion to their number.
        pub apart_after: usize = 50,
        /// Whether failures are predicted.
        pub failures: bool = true,
        /// Typical log length scale, beside half the logarithm of the number of dimensions.
        pub log_length: f64 = -0.5,
        /// Share of proposals drawn uniformly.
        pub explore: f64 = 0.03,
        /// How much of what the model takes for noise, beyond the error that a measurement comes with, a
        /// candidate may gain by: it is luck of the configuration, and the same when that is measured again.
        pub luck: f64 = 1.0,
        /// Results since the last gain from which a second search that knows nothing of the first takes
        /// turns with it.
        pub second_after: usize = 60,
        /// One in so many proposals is then the second search's.
        pub second_every: usize = 2,
        /// Results from which candidates are ranked by the lower bound of their time and not by expected
        /// improvement, which looks around less.
        pub bound_from: usize = usize::MAX,
        /// Most first trials that are chosen from what is known from elsewhere: one for each source, two
        /// at least.
        pub first: usize = 3,
        /// What no source knows, as a share of a source's spread, when the first trials are chosen.
        pub first_doubt: f64 = 0.3,
        /// Standard deviation of a source's weight, in signals a spread of the source.
        pub doubt: f64 = 0.5,
        /// Results before which knowledge is believed whatever they say.
        pub doubt_after: usize = 8,
        /// Results in a row, of those proposed with knowledge, that bring no gain before it is doubted.
        pub patience: usize = 4,
        /// Far configurations tried when knowledge is doubted first: the opening that it replaced.
        pub spread: usize = 6,
        /// Rank correlation with the results from which a source orders them well: no further ones are
        /// tried.
        pub orders_well: f64 = 0.8,
        /// Logarithm of the odds that knowledge is believed from then on, where nothing speaks for or
        /// against it.
        pub trust: f64 = 1.0,
        /// Most that the likelihood of the results may add to these odds or take from them.
        pub most_odds: f64 = 2.0,
        /// What each result since the last gain takes from these odds, of those proposed with knowledge;
        /// less where a source orders the results.
        pub impatience: f64 = 1.0,
        /// Share of that which each result since the last gain gives back, of the others.
        pub second_chance: f64 = 0.1,
        /// Rank correlation with the results below which a source says nothing.
        pub says_something: f64 = 0.3,
        /// The best of all sources in a new pool.
        pub pool_known: usize = 60,
        /// Standard deviations that the bound lies below the mean.
        pub deviations: f64 = 2.5,
    }
}
