//! Parser of acceptance rules: each clause has one of a few written forms.

use super::{Clause, Cmp, Count};
use std::ops::Range;
use tuner_space::{Diagnostic, Diagnostics};

/// Largest accepted percentage or number of problems; more is a typing error.
const MAX_NUMBER: f64 = 1e6;

const CLAUSES: &str = "a clause is `>= 10 % on >= 2 problems`, `>= 5 % on a third`, `p90 no worse`, \
                       `no problem slower`, `no spills`, `SM busy >= 70 %` or `registers <= 128`; a \
                       comma stands between clauses";

/// Words of the forms, with `CMP`, `NUM` and `ORD` for a comparison, a number and an ordinal.
const FORMS: [&str; 15] = [
    "CMP NUM % on NUM problems",
    "CMP NUM % on CMP NUM problems",
    "CMP NUM % on all problems",
    "CMP NUM % on every problems",
    "CMP NUM % on another",
    "CMP NUM % on another problems",
    "CMP NUM % on a ORD",
    "CMP NUM % on a ORD problems",
    "p90 no worse",
    "p90 no worse within NUM %",
    "no spills",
    "no problems slower",
    "no problems slower within NUM %",
    "sm busy CMP NUM %",
    "registers CMP NUM",
];

const ORDINALS: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];

/// A normalised lower-case word with its position.
type Word = (String, Range<usize>);

pub(super) fn rules(text: &str, source: &str) -> Result<Vec<Clause>, Diagnostics> {
    let wrong = |diagnostic| Diagnostics::new(source, text, vec![diagnostic]);
    let mut clauses = Vec::new();
    // Problems that the earlier gains require.
    let mut counted = 0;
    for words in split(text) {
        let clause = clause(&words, counted).map_err(wrong)?;
        if let Clause::Gain {
            on: Count::AtLeast(count),
            ..
        } = clause
        {
            counted = counted.max(count);
        }
        clauses.push(clause);
    }
    if clauses.is_empty() {
        let end = text.len();
        return Err(wrong(
            Diagnostic::new("there is no rule", end..end).help(CLAUSES),
        ));
    }
    Ok(clauses)
}

/// Splits the text into the words of each clause.
fn split(text: &str) -> Vec<Vec<Word>> {
    let kind = |character: char| match character {
        ',' | ';' | '\n' => 0,
        '%' => 1,
        '<' | '>' | '=' | '≥' | '≤' => 2,
        character if character.is_whitespace() => 3,
        _ => 4,
    };
    let mut clauses = vec![Vec::new()];
    let mut last = 3;
    let mut comment = false;
    for (at, character) in text.char_indices() {
        // A comment runs to the end of its line.
        comment = (comment || character == '#') && character != '\n';
        let kind = if comment { 3 } else { kind(character) };
        let word = clauses
            .last_mut()
            .and_then(|words: &mut Vec<Word>| words.last_mut());
        match (kind, word) {
            (0, _) => clauses.push(Vec::new()),
            (3, _) => {}
            (2 | 4, Some((word, place))) if kind == last => {
                word.extend(character.to_lowercase());
                place.end = at + character.len_utf8();
            }
            _ => {
                let word = (
                    character.to_lowercase().collect(),
                    at..at + character.len_utf8(),
                );
                clauses
                    .last_mut()
                    .into_iter()
                    .for_each(|words| words.push(word.clone()));
            }
        }
        last = kind;
    }
    for (word, _) in clauses.iter_mut().flatten() {
        let same = match word.as_str() {
            "problem" => "problems",
            "spill" => "spills",
            "the" => "a",
            "≥" => ">=",
            "≤" => "<=",
            _ => continue,
        };
        same.clone_into(word);
    }
    clauses.retain(|words| !words.is_empty());
    clauses
}

/// Values of a form's placeholders.
#[derive(Default)]
struct Placeholders {
    comparisons: Vec<(Cmp, Range<usize>)>,
    numbers: Vec<(f64, Range<usize>)>,
}

impl Placeholders {
    /// Matches a word against a piece of a form; false if it does not fit.
    fn take(&mut self, piece: &str, read: &Word) -> bool {
        let (word, place) = read;
        let number = match piece {
            "CMP" => {
                let comparison = match word.as_str() {
                    ">=" => Cmp::AtLeast,
                    ">" => Cmp::MoreThan,
                    "<=" => Cmp::AtMost,
                    "<" => Cmp::LessThan,
                    _ => return false,
                };
                self.comparisons.push((comparison, place.clone()));
                return true;
            }
            "NUM" => word
                .parse()
                .ok()
                .filter(|number| (0.0..=MAX_NUMBER).contains(number)),
            "ORD" => ordinal(word),
            fixed => return word == fixed,
        };
        self.numbers
            .extend(number.map(|number| (number, place.clone())));
        number.is_some()
    }

    fn number(&self, at: usize) -> f64 {
        self.numbers.get(at).map_or(0.0, |(number, _)| *number)
    }

    fn comparison(&self) -> Cmp {
        self.comparisons
            .first()
            .map_or(Cmp::AtLeast, |(cmp, _)| *cmp)
    }
}

/// Parses `third` or `3rd`.
fn ordinal(word: &str) -> Option<f64> {
    let named = ORDINALS.iter().position(|name| *name == word);
    let digits = || {
        let ends = ["st", "nd", "rd", "th"];
        let digits = ends.iter().find_map(|end| word.strip_suffix(end))?;
        digits.parse::<u32>().ok().filter(|count| *count > 0)
    };
    let count = named.map(|at| at as u32 + 1).or_else(digits)?;
    Some(f64::from(count))
}

fn clause(words: &[Word], counted: u32) -> Result<Clause, Diagnostic> {
    // The form with the longest match; if none matches completely, it determines the missing word.
    let mut longest = (0, "", Placeholders::default());
    for form in FORMS {
        let mut filled = Placeholders::default();
        let pieces: Vec<&str> = form.split(' ').collect();
        let same = pieces
            .iter()
            .zip(words)
            .take_while(|(piece, word)| filled.take(piece, word))
            .count();
        if same == pieces.len() && same == words.len() {
            return meant(form, &filled, counted);
        }
        if same > longest.0 {
            longest = (same, pieces.get(same).copied().unwrap_or_default(), filled);
        }
    }
    let (same, missing, filled) = longest;
    let end = words.last().map_or(0, |(_, place)| place.end);
    let place = words.get(same).map_or(end..end, |(_, place)| place.clone());
    let wrong = |message: &str, help: &str| Err(Diagnostic::new(message, place.clone()).help(help));
    match missing {
        _ if same == 0 => wrong("this begins no clause", CLAUSES),
        "" => wrong("the clause ends before this", CLAUSES),
        "%" => {
            let number = filled.numbers.last().map_or(10.0, |(number, _)| *number);
            let message = "a per cent sign should stand here";
            wrong(message, &format!("write {number} %"))
        }
        "CMP" => wrong("a comparison should stand here", "write >=, >, <= or <"),
        "NUM" => wrong("a number should stand here", "write a number such as 10"),
        "ORD" => wrong("this is no ordinal", "write second, third, 4th, …"),
        word => wrong(&format!("`{word}` should stand here"), CLAUSES),
    }
}

/// Builds the clause of a form from its placeholders.
fn meant(form: &str, filled: &Placeholders, counted: u32) -> Result<Clause, Diagnostic> {
    let number = filled.number(0);
    let cmp = filled.comparison();
    let wrong = |message: &str, place: Option<Range<usize>>, help: &str| {
        Err(Diagnostic::new(message, place.unwrap_or_default()).help(help))
    };
    let first = filled.numbers.first().map(|(_, place)| place.clone());
    match form {
        "no spills" => return Ok(Clause::NoSpills),
        _ if form.starts_with("p90") => return Ok(Clause::P90NoWorse(number)),
        _ if form.starts_with("no problems") => return Ok(Clause::NoProblemSlower(number)),
        _ if form.starts_with("registers") => return Ok(Clause::Registers(cmp, number)),
        _ if form.starts_with("sm") && number > 100.0 => {
            return wrong("more than all of the time", first, "write at most 100 %");
        }
        _ if form.starts_with("sm") => return Ok(Clause::SmBusy(cmp, number)),
        _ => {}
    }
    let comparison = |at: usize| filled.comparisons.get(at).cloned().unzip();
    if matches!(cmp, Cmp::AtMost | Cmp::LessThan) {
        let message = "a gain can be asked to be large, not small";
        return wrong(message, comparison(0).1, "write >= 10 %");
    }
    let count = filled.number(1);
    let on = match (form, comparison(1)) {
        (_, (Some(Cmp::AtMost | Cmp::LessThan), place)) => {
            let message = "a gain is asked of at least so many problems";
            return wrong(message, place, "write >= 2 problems");
        }
        _ if form.contains(" all ") || form.contains(" every ") => Count::All,
        _ if form.contains(" another") => Count::AtLeast(counted + 1),
        _ if count.fract() != 0.0 || count < 1.0 => {
            let place = filled.numbers.get(1).map(|(_, place)| place.clone());
            return wrong(
                "no number of problems",
                place,
                "write a whole number from 1",
            );
        }
        (_, (Some(Cmp::MoreThan), _)) => Count::AtLeast(count as u32 + 1),
        _ => Count::AtLeast(count as u32),
    };
    Ok(Clause::Gain {
        cmp,
        percent: number,
        on,
    })
}

#[cfg(test)]
mod tests;
