//! Progress lines of an evolution.

use super::options::Options;
use tuner_core::escape;
use tuner_evolve::lineage;
use tuner_store::Change;

/// Announces a stored change in one line.
pub(super) fn change(change: &Change, options: &Options) {
    let outcome = lineage::outcome_text(change);
    let found = escape::line(&lineage::found(change));
    let note = match change.note.is_empty() {
        true => String::new(),
        false => format!(" | {}", escape::line(&change.note)),
    };
    let parent = change
        .parent
        .map_or("shipped".to_owned(), |parent| format!("{parent}"));
    let (round, rounds, id) = (change.round, options.rounds, change.id);
    say!("round {round}/{rounds}: change {id} of {parent}{note}: {outcome}: {found}");
}
