//! Files that users name: which of them are read, and how much of them.
//!
//! Every file that a user names is opened here. A pipe or a device could be endless or never answer, so only regular files and links to
//! them are read, and reading never waits. Traces and tables are written to any kind of file. Every read has a limit. An error is an
//! [`std::io::Error`] whose text names what was found and what is allowed; the caller puts the file's name before it.

mod input;
mod lines;
#[cfg(feature = "cli")]
pub mod segments;

pub use input::{Identity, check_own_folder, create, is_missing_or, open, open_own, read, read_text};
pub use lines::{LINE_LIMIT, Lines, read_line};

/// The largest size in bytes of a file that a person writes: scenarios, secrets, lists, parts of a network.
pub const TEXT_LIMIT: u64 = 16 << 20;
/// The largest size in bytes of a recorded chain whose transactions a workload submits; they are kept in memory.
pub const CHAIN_LIMIT: u64 = 256 << 20;

/// Formats a number of bytes in the largest unit it reaches: a whole number if that is exact, else with one decimal.
pub fn in_words(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match UNITS.iter().find(|(_, bits)| bytes >> bits > 0) {
        None => format!("{bytes} bytes"),
        Some((unit, bits)) if bytes.trailing_zeros() >= *bits => format!("{} {unit}", bytes >> bits),
        Some((unit, bits)) => {
            let tenths = (u128::from(bytes) * 10) >> bits;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
    }
}

/// Escapes the control characters of a text from outside, which a terminal would obey.
pub fn printable(text: &str) -> String {
    let escaped =
        |letter: char| if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_moves_no_cursor() {
        assert_eq!(printable("straße\t\u{1b}[2J\n\u{9b}"), "straße\\t\\u{1b}[2J\\n\\u{9b}");
    }

    #[test]
    fn bytes_are_told_in_units() {
        let told = [0, 1_023, 1_024, 1_536, TEXT_LIMIT, 8_500_000_000, u64::MAX].map(in_words);
        assert_eq!(told, ["0 bytes", "1023 bytes", "1 KiB", "1.5 KiB", "16 MiB", "7.9 GiB", "16777215.9 TiB"]);
    }
}
