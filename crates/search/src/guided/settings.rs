//! The constants of `evolve`, in one place, and the switches of its parts.

/// How `evolve` searches. The values were chosen by cross-validation over recorded spaces;
/// `docs/search.md` has the study.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Configurations tried before the model is asked.
    pub opening: usize,
    /// How many of these are typical of the space; the others are far apart.
    pub typical: usize,
    /// Draws among which each of the former is the most typical one.
    pub typical_draws: usize,
    /// Draws among which each of the latter is the farthest from those before it.
    pub opening_draws: usize,
    /// Fastest configurations that lend parents and neighbours.
    pub elites: usize,
    /// Of these, how many bring all their neighbours into a new pool of candidates.
    pub near_elites: usize,
    /// Most neighbours one elite brings.
    pub near_each: usize,
    /// Uniform draws in a new pool.
    pub pool_uniform: usize,
    /// Children of elites in a new pool.
    pub pool_bred: usize,
    /// Uniform draws that join the pool at each proposal.
    pub join_uniform: usize,
    /// Children of elites that join the pool at each proposal.
    pub join_bred: usize,
    /// Candidates beyond which the less promising are dropped.
    pub pool_limit: usize,
    /// Most results the model holds.
    pub model_limit: usize,
    /// Most results the length scales are fitted to.
    pub fit_limit: usize,
    /// Steps of a fit; none keeps the prior's length scales.
    pub fit_steps: usize,
    /// The model is refitted when the results have grown by this factor.
    pub fit_growth: f64,
    /// What is left of the distance to the median beyond it: slow ones need not be told apart.
    pub slack: f64,
    /// Whether the model knows how often two divides a value.
    pub alignment: bool,
    /// Whether the model tells the values of an ordered parameter apart beside their order.
    pub apart: bool,
    /// How much longer the log length scales of that are believed to be before any result: few
    /// results say nothing of single values.
    pub apart_doubt: f64,
    /// Results at which this belief has gone, in proportion to their number.
    pub apart_after: usize,
    /// Whether failures are predicted.
    pub failures: bool,
    /// Typical log length scale, beside half the logarithm of the number of dimensions.
    pub log_length: f64,
    /// Share of proposals drawn uniformly.
    pub explore: f64,
    /// How much of what the model takes for noise, beyond the error that a measurement comes with, a
    /// candidate may gain by: it is luck of the configuration, and the same when that is measured again.
    pub luck: f64,
    /// Results since the last gain from which a second search that knows nothing of the first takes
    /// turns with it.
    pub second_after: usize,
    /// One in so many proposals is then the second search's.
    pub second_every: usize,
    /// Results from which candidates are ranked by the lower bound of their time and not by expected
    /// improvement, which looks around less.
    pub bound_from: usize,
    /// Most first trials that are chosen from what is known from elsewhere: one for each source, two
    /// at least.
    pub first: usize,
    /// What no source knows, as a share of a source's spread, when the first trials are chosen.
    pub first_doubt: f64,
    /// Standard deviation of a source's weight, in signals a spread of the source.
    pub doubt: f64,
    /// Results before which knowledge is believed whatever they say.
    pub doubt_after: usize,
    /// Results in a row, of those proposed with knowledge, that bring no gain before it is doubted.
    pub patience: usize,
    /// Far configurations tried when knowledge is doubted first: the opening that it replaced.
    pub spread: usize,
    /// Rank correlation with the results from which a source orders them well: no further ones are
    /// tried.
    pub orders_well: f64,
    /// Logarithm of the odds that knowledge is believed from then on, where nothing speaks for or
    /// against it.
    pub trust: f64,
    /// Most that the likelihood of the results may add to these odds or take from them.
    pub most_odds: f64,
    /// What each result since the last gain takes from these odds, of those proposed with knowledge;
    /// less where a source orders the results.
    pub impatience: f64,
    /// Share of that which each result since the last gain gives back, of the others.
    pub second_chance: f64,
    /// Rank correlation with the results below which a source says nothing.
    pub says_something: f64,
    /// The best of all sources in a new pool.
    pub pool_known: usize,
    /// Standard deviations that the bound lies below the mean.
    pub deviations: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            opening: 7,
            typical: 2,
            typical_draws: 40,
            opening_draws: 30,
            elites: 16,
            near_elites: 10,
            near_each: 64,
            pool_uniform: 150,
            pool_bred: 100,
            join_uniform: 4,
            join_bred: 4,
            pool_limit: 800,
            model_limit: 400,
            fit_limit: 150,
            fit_steps: 10,
            fit_growth: 1.15,
            slack: 0.5,
            alignment: true,
            apart: true,
            apart_doubt: 2.0,
            apart_after: 50,
            failures: true,
            log_length: -0.5,
            explore: 0.03,
            luck: 1.0,
            second_after: 60,
            second_every: 2,
            bound_from: usize::MAX,
            deviations: 2.5,
            first: 3,
            first_doubt: 0.3,
            doubt: 0.5,
            doubt_after: 8,
            patience: 4,
            spread: 6,
            orders_well: 0.8,
            trust: 1.0,
            most_odds: 2.0,
            impatience: 1.0,
            second_chance: 0.1,
            says_something: 0.3,
            pool_known: 60,
        }
    }
}
