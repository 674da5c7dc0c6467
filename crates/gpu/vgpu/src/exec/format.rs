//! Text of `printf` in kernels, as the C library of the host formats it.

mod number;

/// Widest field: CUDA has no text that is longer than its buffer.
const WIDTH_MAX: usize = 1 << 16;

/// Arguments of one call: packed, each at a multiple of its size.
pub(super) trait Arguments {
    /// The next argument of 4 or 8 bytes; `None` where it cannot be read.
    fn next(&mut self, bytes: u64) -> Option<u64>;
    /// The bytes before the NUL at an address; `None` where they cannot be read.
    fn text(&mut self, address: u64) -> Option<Vec<u8>>;
}

/// One conversion, such as `%-8.3f`.
#[derive(Debug, Clone, Copy, Default)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    length: Length,
    letter: u8,
}

/// Size of an integer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Length {
    Byte,
    Short,
    #[default]
    Int,
    Long,
}

impl Length {
    fn bytes(self) -> u64 {
        // C promotes `char` and `short` arguments to `int`.
        if self == Length::Long { 8 } else { 4 }
    }

    fn bits(self) -> u32 {
        match self {
            Length::Byte => 8,
            Length::Short => 16,
            Length::Int => 32,
            Length::Long => 64,
        }
    }
}

/// Formats one call; also returns the number of arguments that it took. `None` where one cannot be
/// read.
pub(super) fn format(format: &[u8], arguments: &mut impl Arguments) -> Option<(Vec<u8>, i32)> {
    let mut out = Vec::new();
    let mut rest = format;
    let mut taken = 0;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain);
        let mut parser = Parser {
            rest: from.get(1..).unwrap_or_default(),
            arguments,
            taken: 0,
        };
        match parser.conversion()? {
            Some(c) if c.letter == b'%' => out.push(b'%'),
            Some(c) => {
                let text = parser.converted(&c)?;
                out.extend(pad(text, &c));
            }
            // Not a conversion: C leaves it open, the host's library prints it as it is.
            None => {
                let length = from.len() - parser.rest.len();
                out.extend_from_slice(from.get(..length).unwrap_or_default());
            }
        }
        taken += parser.taken;
        rest = parser.rest;
    }
    out.extend_from_slice(rest);
    Some((out, taken))
}

struct Parser<'f, 'a, A> {
    rest: &'f [u8],
    arguments: &'a mut A,
    taken: i32,
}

impl<A: Arguments> Parser<'_, '_, A> {
    fn accept(&mut self, byte: u8) -> bool {
        let hit = self.rest.first() == Some(&byte);
        if hit {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        hit
    }

    fn argument(&mut self, bytes: u64) -> Option<u64> {
        self.taken += 1;
        self.arguments.next(bytes)
    }

    /// Parses what follows `%`; an inner `None` where it is not a conversion.
    fn conversion(&mut self) -> Option<Option<Conversion>> {
        let mut c = Conversion::default();
        loop {
            match self.rest.first() {
                Some(b'-') => c.left = true,
                Some(b'+') => c.plus = true,
                Some(b' ') => c.space = true,
                Some(b'#') => c.alternate = true,
                Some(b'0') => c.zero = true,
                _ => break,
            }
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        let width = self.size()?.unwrap_or(0);
        c.left |= width < 0;
        c.width = (width.unsigned_abs() as usize).min(WIDTH_MAX);
        if self.accept(b'.') {
            // A negative one is as if there were none.
            let precision = self.size()?.unwrap_or(0);
            c.precision = usize::try_from(precision).ok().map(|p| p.min(WIDTH_MAX));
        }
        c.length = self.length();
        let Some((letter, rest)) = self.rest.split_first() else {
            return Some(None);
        };
        if !b"diuoxXcspfFeEgGaAn%".contains(letter) {
            return Some(None);
        }
        (c.letter, self.rest) = (*letter, rest);
        Some(Some(c))
    }

    /// Parses a width or a precision: digits, `*`, or nothing.
    fn size(&mut self) -> Option<Option<i64>> {
        if self.accept(b'*') {
            let value = self.argument(4)? as u32 as i32;
            return Some(Some(value.into()));
        }
        let mut value = None;
        while let Some(digit) = self.rest.first().filter(|b| b.is_ascii_digit()) {
            let more = value.unwrap_or(0) * 10 + i64::from(digit - b'0');
            value = Some(more.min(WIDTH_MAX as i64));
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        Some(value)
    }

    fn length(&mut self) -> Length {
        if self.accept(b'h') {
            return match self.accept(b'h') {
                true => Length::Byte,
                false => Length::Short,
            };
        }
        let mut length = Length::Int;
        // These types have 64 bits in device code on Linux.
        while [b'l', b'z', b'j', b't', b'q', b'L']
            .iter()
            .any(|byte| self.accept(*byte))
        {
            length = Length::Long;
        }
        length
    }

    fn converted(&mut self, c: &Conversion) -> Option<Text> {
        Some(match c.letter {
            b'd' | b'i' => {
                let unused = 64 - c.length.bits();
                let value = (self.argument(c.length.bytes())? << unused) as i64 >> unused;
                number::signed(value, c)
            }
            b'u' | b'o' | b'x' | b'X' => {
                let unused = 64 - c.length.bits();
                number::unsigned(self.argument(c.length.bytes())? << unused >> unused, c)
            }
            b'c' => Text::plain(vec![self.argument(4)? as u8]),
            b's' => {
                let address = self.argument(8)?;
                let mut text = match address {
                    0 => b"(null)".to_vec(),
                    address => self.arguments.text(address)?,
                };
                text.truncate(c.precision.unwrap_or(usize::MAX));
                Text::plain(text)
            }
            b'p' => match self.argument(8)? {
                0 => Text::plain(b"(nil)".to_vec()),
                address => Text::plain(format!("{address:#x}").into_bytes()),
            },
            b'n' => {
                // Device code has no `%n`: nothing is stored.
                self.argument(8)?;
                Text::plain(Vec::new())
            }
            // C promotes a `float` argument to `double`.
            _ => number::float(f64::from_bits(self.argument(8)?), c),
        })
    }
}

/// A converted argument: zeros for the field's width come after the prefix.
struct Text {
    prefix: Vec<u8>,
    digits: Vec<u8>,
    /// `0` pads it with zeros.
    zeros: bool,
}

impl Text {
    fn plain(digits: Vec<u8>) -> Text {
        Text {
            prefix: Vec::new(),
            digits,
            zeros: false,
        }
    }
}

/// Pads a converted argument to the width of its field.
fn pad(text: Text, c: &Conversion) -> Vec<u8> {
    let missing = c
        .width
        .saturating_sub(text.prefix.len() + text.digits.len());
    // C, `fprintf`: the flag `-` overrides `0`.
    let zeros = c.zero && text.zeros && !c.left;
    let blanks = |wanted: bool| vec![b' '; if wanted { missing } else { 0 }];
    let mut out = blanks(!c.left && !zeros);
    out.extend(text.prefix);
    out.extend(vec![b'0'; if zeros { missing } else { 0 }]);
    out.extend(text.digits);
    out.extend(blanks(c.left));
    out
}
