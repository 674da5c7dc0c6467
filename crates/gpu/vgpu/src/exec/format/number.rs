//! Numbers of `printf`.

use super::{Conversion, Text};

fn sign(negative: bool, c: &Conversion) -> &'static str {
    match () {
        () if negative => "-",
        () if c.plus => "+",
        () if c.space => " ",
        () => "",
    }
}

/// Extends the digits of an integer to its precision; zero with precision 0 has none.
fn digits(value: u64, text: String, c: &Conversion) -> Vec<u8> {
    match c.precision {
        Some(0) if value == 0 => Vec::new(),
        precision => format!("{text:0>0$}", precision.unwrap_or(1)).into_bytes(),
    }
}

pub(super) fn signed(value: i64, c: &Conversion) -> Text {
    let size = value.unsigned_abs();
    Text {
        prefix: sign(value < 0, c).into(),
        digits: digits(size, size.to_string(), c),
        // C, `fprintf`: an integer with a precision ignores the flag `0`.
        zeros: c.precision.is_none(),
    }
}

pub(super) fn unsigned(value: u64, c: &Conversion) -> Text {
    let text = match c.letter {
        b'o' => format!("{value:o}"),
        b'x' => format!("{value:x}"),
        b'X' => format!("{value:X}"),
        _ => value.to_string(),
    };
    let mut digits = digits(value, text, c);
    let mut prefix = "";
    match c.letter {
        // C, `fprintf`: `#` makes the first octal digit a zero; a number that begins with one needs
        // no other.
        b'o' if c.alternate && digits.first() != Some(&b'0') => digits.insert(0, b'0'),
        b'x' if c.alternate && value != 0 => prefix = "0x",
        b'X' if c.alternate && value != 0 => prefix = "0X",
        _ => {}
    }
    Text {
        prefix: prefix.into(),
        digits,
        zeros: c.precision.is_none(),
    }
}

pub(super) fn float(value: f64, c: &Conversion) -> Text {
    let mut prefix = sign(value.is_sign_negative(), c).to_owned();
    let size = value.abs();
    let lower = c.letter.to_ascii_lowercase();
    let mut digits = match lower {
        _ if value.is_nan() => "nan".to_owned(),
        _ if value.is_infinite() => "inf".to_owned(),
        b'e' => exponential(size, c.precision.unwrap_or(6), c.alternate),
        b'f' => fixed(size, c.precision.unwrap_or(6), c.alternate),
        b'g' => general(size, c),
        _ => {
            prefix.push_str("0x");
            hexadecimal(size, c)
        }
    };
    if c.letter.is_ascii_uppercase() {
        digits.make_ascii_uppercase();
        prefix.make_ascii_uppercase();
    }
    Text {
        prefix: prefix.into_bytes(),
        digits: digits.into_bytes(),
        // C, `fprintf`: infinities and NaNs are padded with spaces even with the flag `0`.
        zeros: value.is_finite(),
    }
}

fn fixed(size: f64, precision: usize, point: bool) -> String {
    let point = if point && precision == 0 { "." } else { "" };
    format!("{size:.precision$}{point}")
}

/// Splits a positive number into the digits of its significand and its decimal exponent.
fn decimal(size: f64, precision: usize) -> (String, i32) {
    let text = format!("{size:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.to_owned(), exponent.parse().unwrap_or(0))
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    // C writes the sign and at least two digits of the exponent, Rust neither.
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn exponential(size: f64, precision: usize, point: bool) -> String {
    let (digits, exponent) = decimal(size, precision);
    let point = if point && precision == 0 { "." } else { "" };
    with_exponent(&format!("{digits}{point}"), exponent)
}

/// `%g`: the shorter of `%e` and `%f`, without zeros at the end.
fn general(size: f64, c: &Conversion) -> String {
    let precision = c.precision.unwrap_or(6).max(1);
    // C, `%g`: the exponent of the rounded number decides, as 9.9999999 rounds to 10.0000.
    let (digits, exponent) = decimal(size, precision - 1);
    let trim = |text: String| match text.contains('.') && !c.alternate {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    let with_point = |text: String| match c.alternate && !text.contains('.') {
        true => format!("{text}."),
        false => text,
    };
    if exponent < -4 || i64::from(exponent) >= precision as i64 {
        return with_exponent(&trim(with_point(digits)), exponent);
    }
    let places = (precision as i64 - 1 - i64::from(exponent)).max(0) as usize;
    trim(with_point(format!("{size:.places$}")))
}

/// Digits of a double's fraction in base 16.
const HEX_DIGITS: usize = 13;

/// `%a` without its prefix.
fn hexadecimal(size: f64, c: &Conversion) -> String {
    let bits = size.to_bits();
    let mut fraction = bits & ((1 << 52) - 1);
    let biased = (bits >> 52) as i32;
    let mut lead = u64::from(biased != 0);
    let exponent = match (biased, fraction) {
        (0, 0) => 0,
        (0, _) => -1022,
        (biased, _) => biased - 1023,
    };
    let mut places = HEX_DIGITS;
    match c.precision {
        Some(precision) if precision < HEX_DIGITS => {
            // To the nearest, ties to even.
            let dropped = 4 * (HEX_DIGITS - precision);
            let whole = lead << 52 | fraction;
            let (kept, rest) = (whole >> dropped, whole & ((1 << dropped) - 1));
            let half = 1 << (dropped - 1);
            let up = rest > half || rest == half && kept & 1 == 1;
            let rounded = (kept + u64::from(up)) << dropped;
            (lead, fraction) = (rounded >> 52, rounded & ((1 << 52) - 1));
            places = precision;
        }
        Some(_) => {}
        // Without a precision the digits are exact, and the host's library omits zeros at their
        // end.
        None => {
            while places > 0 && fraction & ((1 << (4 * (HEX_DIGITS - places + 1))) - 1) == 0 {
                places -= 1;
            }
        }
    }
    let all = format!("{fraction:013x}");
    let mut shown = all.get(..places).unwrap_or_default().to_owned();
    if let Some(precision) = c.precision {
        shown = format!("{shown:0<precision$}");
    }
    let point = if shown.is_empty() && !c.alternate {
        ""
    } else {
        "."
    };
    format!("{lead}{point}{shown}p{exponent:+}")
}
