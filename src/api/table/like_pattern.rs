//! Patterns of SQL's `LIKE` as the reference's database reads them, over bytes. Source: api.md 4.2.

/// A part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Byte(u8),
    One,
    Any,
}

/// A pattern of SQL's `LIKE` over bytes.
#[derive(Debug)]
pub(crate) struct Pattern(Vec<Token>);

impl Pattern {
    /// True if a text contains a special character of patterns.
    pub fn is_one(text: &str) -> bool {
        text.bytes().any(|byte| b"%_\\".contains(&byte))
    }

    /// The pattern that matches texts with `text` anywhere in them. The database first reads the pattern as a value of
    /// bytes: two backslashes become one, and a backslash with three octal digits becomes a byte. A remaining backslash
    /// makes the next byte literal. A single backslash at the end, which the reference answers with 500, matches a
    /// backslash.
    pub fn containing(text: &str) -> Self {
        let mut tokens = vec![Token::Any];
        let mut rest = text.as_bytes();
        let mut is_escaped = false;
        while let Some((read, after)) = read_byte(rest) {
            rest = after;
            tokens.push(match read {
                PatternByte::Escape if !is_escaped => {
                    is_escaped = true;
                    continue;
                }
                PatternByte::Escape => Token::Byte(b'\\'),
                PatternByte::Byte(byte) if is_escaped => Token::Byte(byte),
                PatternByte::Byte(b'%') => Token::Any,
                PatternByte::Byte(b'_') => Token::One,
                PatternByte::Byte(byte) | PatternByte::Literal(byte) => Token::Byte(byte),
            });
            is_escaped = false;
        }
        // The database puts the text between two percent signs, so an escape at its end makes the second one literal.
        tokens.push(if is_escaped { Token::Byte(b'%') } else { Token::Any });
        Self(tokens)
    }

    /// True if the whole text matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        let (mut at, mut token) = (0, 0);
        // The position to retry from, one byte further, if the tokens after the last `Any` do not match.
        let mut again: Option<(usize, usize)> = None;
        loop {
            match self.0.get(token) {
                Some(Token::Any) => {
                    again = Some((at, token + 1));
                    token += 1;
                    continue;
                }
                Some(wanted) if at < text.len() && (*wanted == Token::One || *wanted == Token::Byte(text[at])) => {
                    (at, token) = (at + 1, token + 1);
                    continue;
                }
                None if at == text.len() => return true,
                _ => {}
            }
            match again {
                Some((from, after)) if from < text.len() => {
                    again = Some((from + 1, after));
                    (at, token) = (from + 1, after);
                }
                _ => return false,
            }
        }
    }
}

/// A byte of a pattern, as the database reads it.
enum PatternByte {
    Byte(u8),
    /// A backslash that makes the next byte literal.
    Escape,
    /// A literal byte.
    Literal(u8),
}

fn read_byte(text: &[u8]) -> Option<(PatternByte, &[u8])> {
    let octal = |digits: &[u8]| {
        let is_octal = digits[0] <= b'3' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
        is_octal.then(|| digits.iter().fold(0_u8, |byte, digit| (byte << 3) | (digit - b'0')))
    };
    match text {
        [] => None,
        [b'\\', b'\\', rest @ ..] => Some((PatternByte::Escape, rest)),
        [b'\\', a, b, c, rest @ ..] if octal(&[*a, *b, *c]).is_some() => octal(&[*a, *b, *c])
            .map(|byte| (if byte == b'\\' { PatternByte::Escape } else { PatternByte::Byte(byte) }, rest)),
        [b'\\', rest @ ..] => Some((PatternByte::Literal(b'\\'), rest)),
        [byte, rest @ ..] => Some((PatternByte::Byte(*byte), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(text: &str, pattern: &str) -> bool {
        Pattern::containing(pattern).matches(text.as_bytes())
    }

    #[test]
    fn a_plain_text_is_looked_for_anywhere() {
        for part in ["stays open", "stays", "open", "y", "s o"] {
            assert!(has("stays open", part) && !Pattern::is_one(part), "{part}");
        }
        assert!(!has("stays open", "opens") && !has("stays open", "STAYS") && !has("", "a"));
    }

    #[test]
    fn percent_signs_stand_for_any_bytes_and_underscores_for_one() {
        for pattern in ["%", "s%n", "st_ys", "_____", "s%o%n", "%%%", "__________", "t%t%%"] {
            assert_eq!(has("stays open", pattern), pattern != "t%t%%", "{pattern}");
        }
        assert!(!has("stays open", "___________"), "eleven bytes are more than there are");
        assert!(has("\u{17c}", "__") && !has("\u{17c}", "___"), "a letter of two bytes");
        let long = "a".repeat(255);
        assert!(!has(&long, &"a%".repeat(127).replacen('a', "b", 1)));
    }

    #[test]
    fn backslashes_are_read_twice() {
        assert!(has("100% sure", r"100\\% s") && !has("1000 sure", r"100\\% s"));
        assert!(has("a_b", r"a\\_b") && !has("axb", r"a\\_b"));
        assert!(has("axb", r"a\170b"), "an octal byte");
        assert!(has(r"a\b", r"a\\\\b") && has(r"a\b", r"a\b"), "one that stands for itself, and one alone");
        assert!(has("5%", r"5\\") && !has("5", r"5\\"), "an escape at the end is that of the percent sign behind it");
    }
}
