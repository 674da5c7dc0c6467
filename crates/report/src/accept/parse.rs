//! Reads acceptance rules.

use super::{Clause, Cmp, Count};
use std::ops::Range;
use tuner_space::{Diagnostic, Diagnostics};

/// More per cent or problems than this are a slip of the keyboard.
const LARGEST: f64 = 1e6;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Cmp(Cmp),
    Number(f64),
    Percent,
    Word(String),
    Separator,
}

type Placed = (Token, Range<usize>);

pub(super) fn rules(text: &str, source: &str) -> Result<Vec<Clause>, Diagnostics> {
    let wrong = |diagnostic| Diagnostics::new(source, text, vec![diagnostic]);
    let tokens = tokens(text).map_err(wrong)?;
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        end: text.len(),
        counted: 0,
    };
    parser.all().map_err(wrong)
}

fn tokens(text: &str) -> Result<Vec<Placed>, Diagnostic> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, character)) = rest.next() {
        let mut end = start + character.len_utf8();
        let mut take = |accept: &dyn Fn(char) -> bool| {
            while let Some((_, next)) = rest.next_if(|(_, next)| accept(*next)) {
                end += next.len_utf8();
            }
        };
        let token = match character {
            // A comment runs to the end of its line.
            '#' => {
                take(&|next| next != '\n');
                continue;
            }
            ',' | ';' | '\n' => Token::Separator,
            space if space.is_whitespace() => continue,
            '%' => Token::Percent,
            '≥' => Token::Cmp(Cmp::AtLeast),
            '≤' => Token::Cmp(Cmp::AtMost),
            '>' | '<' => {
                take(&|next| next == '=');
                match &text[start..end] {
                    ">" => Token::Cmp(Cmp::MoreThan),
                    "<" => Token::Cmp(Cmp::LessThan),
                    ">=" => Token::Cmp(Cmp::AtLeast),
                    "<=" => Token::Cmp(Cmp::AtMost),
                    other => {
                        let message = format!("`{other}` is no comparison");
                        return Err(
                            Diagnostic::new(message, start..end).help("write >=, >, <= or <")
                        );
                    }
                }
            }
            digit if digit.is_ascii_digit() || digit == '.' => {
                take(&|next| next.is_ascii_alphanumeric() || next == '.');
                number_or_ordinal(&text[start..end], start..end)?
            }
            letter if letter.is_alphabetic() => {
                take(&|next| next.is_alphanumeric() || next == '_');
                Token::Word(text[start..end].to_lowercase())
            }
            other => {
                let message = format!("`{other}` has no meaning in a rule");
                return Err(Diagnostic::new(message, start..end).help(CLAUSES));
            }
        };
        tokens.push((token, start..end));
    }
    Ok(tokens)
}

/// `10`, `2.5`, `3rd`.
fn number_or_ordinal(text: &str, at: Range<usize>) -> Result<Token, Diagnostic> {
    if let Ok(number) = text.parse::<f64>() {
        if number.is_finite() && number <= LARGEST {
            return Ok(Token::Number(number));
        }
        return Err(Diagnostic::new(format!("{text} is too large"), at)
            .help("write a percentage such as 10"));
    }
    let lower = text.to_ascii_lowercase();
    let ordinal = ["st", "nd", "rd", "th"].iter().any(|end| {
        lower
            .strip_suffix(end)
            .is_some_and(|digits| digits.parse::<u32>().is_ok())
    });
    if ordinal {
        return Ok(Token::Word(lower));
    }
    Err(Diagnostic::new(format!("`{text}` is no number"), at)
        .help("write a number such as 10 or 2.5"))
}

const CLAUSES: &str = "a clause is `>= 10 % on >= 2 problems`, `>= 5 % on a third`, `p90 no worse`, \
                       `no problem slower`, `no spills`, `SM busy >= 70 %` or `registers <= 128`; a \
                       comma stands between clauses";

struct Parser<'t> {
    tokens: &'t [Placed],
    at: usize,
    end: usize,
    /// Problems that the gains before ask for.
    counted: u32,
}

impl Parser<'_> {
    fn all(&mut self) -> Result<Vec<Clause>, Diagnostic> {
        let mut clauses = Vec::new();
        loop {
            while self.peek() == Some(&Token::Separator) {
                self.at += 1;
            }
            if self.peek().is_none() {
                break;
            }
            clauses.push(self.clause()?);
            match self.peek() {
                None | Some(Token::Separator) => {}
                Some(_) => return Err(self.wrong("the clause ends before this").help(CLAUSES)),
            }
        }
        if clauses.is_empty() {
            return Err(self.wrong("there is no rule").help(CLAUSES));
        }
        Ok(clauses)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn place(&self) -> Range<usize> {
        self.tokens
            .get(self.at)
            .map_or(self.end..self.end, |(_, at)| at.clone())
    }

    fn wrong(&self, message: &str) -> Diagnostic {
        Diagnostic::new(message, self.place())
    }

    fn word(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(word)) if word == wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: &str) -> Result<(), Diagnostic> {
        if self.word(wanted) {
            Ok(())
        } else {
            Err(self
                .wrong(&format!("`{wanted}` should stand here"))
                .help(CLAUSES))
        }
    }

    fn clause(&mut self) -> Result<Clause, Diagnostic> {
        if matches!(self.peek(), Some(Token::Cmp(_))) {
            return self.gain();
        }
        if self.word("p90") {
            self.expect("no")?;
            self.expect("worse")?;
            return Ok(Clause::P90NoWorse(self.within()?));
        }
        if self.word("no") {
            if self.word("spills") || self.word("spill") {
                return Ok(Clause::NoSpills);
            }
            self.expect("problem")?;
            self.expect("slower")?;
            return Ok(Clause::NoProblemSlower(self.within()?));
        }
        if self.word("sm") {
            self.expect("busy")?;
            let cmp = self.cmp()?;
            let at = self.place();
            let percent = self.percent()?;
            if percent > 100.0 {
                let message = "more than all of the time";
                return Err(Diagnostic::new(message, at).help("write at most 100 %"));
            }
            return Ok(Clause::SmBusy(cmp, percent));
        }
        if self.word("registers") {
            let cmp = self.cmp()?;
            return Ok(Clause::Registers(
                cmp,
                self.number("a number of registers")?,
            ));
        }
        Err(self.wrong("this begins no clause").help(CLAUSES))
    }

    fn within(&mut self) -> Result<f64, Diagnostic> {
        if self.word("within") {
            self.percent()
        } else {
            Ok(0.0)
        }
    }

    fn cmp(&mut self) -> Result<Cmp, Diagnostic> {
        let Some(Token::Cmp(cmp)) = self.peek() else {
            return Err(self
                .wrong("a comparison should stand here")
                .help("write >=, >, <= or <"));
        };
        let cmp = *cmp;
        self.at += 1;
        Ok(cmp)
    }

    fn number(&mut self, what: &str) -> Result<f64, Diagnostic> {
        let Some(Token::Number(number)) = self.peek() else {
            return Err(self
                .wrong(&format!("{what} should stand here"))
                .help("write a number such as 10"));
        };
        let number = *number;
        self.at += 1;
        Ok(number)
    }

    fn percent(&mut self) -> Result<f64, Diagnostic> {
        let number = self.number("a percentage")?;
        if self.peek() == Some(&Token::Percent) {
            self.at += 1;
            Ok(number)
        } else {
            Err(self
                .wrong("a per cent sign should stand here")
                .help(format!("write {number} %")))
        }
    }

    fn gain(&mut self) -> Result<Clause, Diagnostic> {
        let at = self.place();
        let cmp = self.cmp()?;
        if matches!(cmp, Cmp::AtMost | Cmp::LessThan) {
            let message = "a gain can be asked to be large, not small";
            return Err(Diagnostic::new(message, at).help("write >= 10 %"));
        }
        let percent = self.percent()?;
        self.expect("on")?;
        let on = self.problems()?;
        if let Count::AtLeast(count) = on {
            self.counted = self.counted.max(count);
        }
        Ok(Clause::Gain { cmp, percent, on })
    }

    fn problems(&mut self) -> Result<Count, Diagnostic> {
        if self.word("all") {
            self.expect("problems")?;
            return Ok(Count::All);
        }
        if self.word("every") {
            self.expect("problem")?;
            return Ok(Count::All);
        }
        if self.word("another") {
            self.word("problem");
            return Ok(Count::AtLeast(self.counted + 1));
        }
        if self.word("a") || self.word("the") {
            return self.ordinal();
        }
        let at = self.place();
        let more = if matches!(self.peek(), Some(Token::Cmp(_))) {
            Some(self.cmp()?)
        } else {
            None
        };
        let number_at = self.place();
        let number = self.number("a number of problems")?;
        if number.fract() != 0.0 || number < 1.0 {
            return Err(Diagnostic::new("no number of problems", number_at)
                .help("write a whole number from 1"));
        }
        let count = match more {
            None | Some(Cmp::AtLeast) => number,
            Some(Cmp::MoreThan) => number + 1.0,
            Some(_) => {
                let message = "a gain is asked of at least so many problems";
                return Err(Diagnostic::new(message, at).help("write >= 2 problems"));
            }
        };
        if !self.word("problems") {
            self.expect("problem")?;
        }
        Ok(Count::AtLeast(count as u32))
    }

    fn ordinal(&mut self) -> Result<Count, Diagnostic> {
        const NAMES: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];
        let Some(Token::Word(word)) = self.peek() else {
            return Err(self
                .wrong("`second`, `third`, … should stand here")
                .help(CLAUSES));
        };
        let named = NAMES
            .iter()
            .position(|name| name == word)
            .map(|at| at as u32 + 1);
        let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
        let Some(count) = named
            .or_else(|| digits.parse().ok())
            .filter(|count| *count >= 1)
        else {
            return Err(self
                .wrong("this is no ordinal")
                .help("write second, third, 4th, …"));
        };
        self.at += 1;
        self.word("problem");
        Ok(Count::AtLeast(count))
    }
}

#[cfg(test)]
mod tests {
    use crate::accept::{Clause, Cmp, Count, Rules};
    use proptest::prelude::*;

    #[test]
    fn what_is_wrong_is_pointed_at_with_what_may_stand_there() {
        for (text, place, hint) in [
            ("", (1, 1), "a clause is"),
            ("≥ 10 on 2 problems", (1, 6), "write 10 %"),
            (">= 10 % on some problems", (1, 12), "write a number"),
            (">= 10 % on 2.5 problems", (1, 12), "whole number"),
            ("<= 10 % on 2 problems", (1, 1), "write >= 10 %"),
            (">= 10 % on <= 2 problems", (1, 12), "write >= 2 problems"),
            (
                "no spills no problem slower",
                (1, 11),
                "a comma stands between",
            ),
            ("p90 not worse", (1, 5), "a clause is"),
            ("SM busy >= 170 %", (1, 12), "at most 100"),
            ("no spills,\n  >== 3 % on all problems", (2, 3), "write >="),
            ("3x faster", (1, 1), "write a number"),
            (">= 3 % on a purple", (1, 13), "write second"),
            ("& no spills", (1, 1), "a clause is"),
        ] {
            let error = Rules::parse(text, "--accept").unwrap_err();
            assert_eq!(error.place().unwrap_or((1, 1)), place, "{text}: {error}");
            let words = error.to_string();
            assert!(
                words.contains(hint) && words.contains("--accept:"),
                "{text}: {words}"
            );
            assert!(text.is_empty() || words.contains('^'), "{text}: {words}");
        }
    }

    fn clause() -> impl Strategy<Value = Clause> {
        let percent = (0u32..2000).prop_map(|tenths| f64::from(tenths) / 10.0);
        let any_cmp = prop_oneof![
            Just(Cmp::AtLeast),
            Just(Cmp::MoreThan),
            Just(Cmp::AtMost),
            Just(Cmp::LessThan)
        ];
        let more = prop_oneof![Just(Cmp::AtLeast), Just(Cmp::MoreThan)];
        let on = prop_oneof![(1u32..9).prop_map(Count::AtLeast), Just(Count::All)];
        prop_oneof![
            (more, percent.clone(), on).prop_map(|(cmp, percent, on)| Clause::Gain {
                cmp,
                percent,
                on
            }),
            percent.clone().prop_map(Clause::P90NoWorse),
            percent.clone().prop_map(Clause::NoProblemSlower),
            Just(Clause::NoSpills),
            (any_cmp.clone(), 0u32..=100)
                .prop_map(|(cmp, percent)| Clause::SmBusy(cmp, f64::from(percent))),
            (any_cmp, 1u32..256).prop_map(|(cmp, count)| Clause::Registers(cmp, f64::from(count))),
        ]
    }

    proptest! {
        #[test]
        fn printed_rules_read_back_alike(clauses in proptest::collection::vec(clause(), 1..6)) {
            let rules = Rules(clauses);
            let again = Rules::parse(&rules.to_string(), "rules").unwrap();
            prop_assert_eq!(&again, &rules);
            let plain = rules.to_string().replace('≥', ">=").replace('≤', "<=");
            prop_assert_eq!(Rules::parse(&plain, "rules").unwrap(), rules);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[ -~≥≤\n%,>=<0-9a-z]{0,60}") {
            let _ = Rules::parse(&text, "rules").map_err(|error| error.to_string());
        }

        #[test]
        fn a_larger_gain_never_loses_a_promotion(
            gains in proptest::collection::vec(0.8f64..1.4, 1..6),
            more in 0usize..6,
        ) {
            use crate::accept::Figures;
            let rules = Rules::parse(">= 10 % on >= 2 problems, >= 5 % on a third, no problem slower within 5 %", "r").unwrap();
            let judge = |gains: &[f64]| {
                let problems: Vec<(String, Figures)> = gains
                    .iter()
                    .map(|gain| (String::new(), Figures { gain: *gain, gain_low: *gain, ..Figures::default() }))
                    .collect();
                rules.judge(&problems).iter().all(|finding| finding.holds)
            };
            let before = judge(&gains);
            let mut better = gains.clone();
            let at = more % gains.len();
            better[at] *= 1.5;
            prop_assert!(!before || judge(&better));
        }
    }
}
