//! Transactions of a recorded load: a CSV file has a row for each, with its instant and optional parts.

use super::{Generate, Kind, Trace, WALLETS_LIMIT, lengths::LENGTH_LIMIT};
use crate::{
    files::{self, CHAIN_LIMIT},
    protocol::{Arktoshi, crypto::sha256},
    scenario::load::cells,
};
use serde::Deserialize;
use serde_json::Value;
use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

/// The columns that a file can have. The first one is required.
const COLUMNS: [&str; 6] = ["seconds", "kind", "sender", "recipient", "amount", "vendor_field"];
/// The greatest number of seconds after the beginning of a workload.
const SECONDS_LIMIT: f64 = 3.2e9;
/// The greatest number of coins of a row.
const COINS_LIMIT: f64 = 1e8;
/// The number of wallets of a workload whose file names no sender.
const WALLETS: u32 = 10;

/// The rows of a file, and the number of senders that it names.
#[derive(Clone, Debug, Default)]
pub(super) struct TraceRows {
    pub rows: Arc<[TraceRow]>,
    senders: u32,
}

/// A transaction of a file. The parts that it leaves out are drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceRow {
    /// The time after the beginning of the workload.
    pub at: Duration,
    pub kind: Option<Kind>,
    /// The number of its sender's wallet.
    pub sender: Option<u32>,
    pub recipient: Option<Recipient>,
    pub amount: Option<Arktoshi>,
    /// The length of its vendor field in bytes.
    pub vendor_field: Option<usize>,
}

/// The recipient of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recipient {
    /// The wallet of a sender, by its number.
    Wallet(u32),
    /// An address without its network byte, derived from the text in the file alone.
    Address([u8; 20]),
}

impl Trace {
    /// Checks that its file is a load, and that there are wallets for its senders.
    pub(in crate::scenario) fn check(&self) -> Result<(), String> {
        let TraceRows { senders, .. } = self.rows()?;
        match self.wallets.filter(|wallets| *wallets < senders) {
            Some(wallets) => Err(format!("it names {senders} senders, and 'wallets' allows {wallets}")),
            None => Ok(()),
        }
    }

    /// Reads its file.
    pub(super) fn rows(&self) -> Result<TraceRows, String> {
        read(self.copy.place(&self.file))
    }

    /// Returns the generator of its transactions, with as many wallets as its rows need.
    pub(super) fn generate(self, rows: &TraceRows) -> Generate {
        let wallets = self.wallets.unwrap_or(if rows.senders == 0 { WALLETS } else { rows.senders });
        let Self { file: _, wallets: _, funding, mix, amount, fee, vendor_field, nodes, copy: _ } = self;
        // The rows have their own times, so the rate is not used.
        Generate {
            per_second: 1.0,
            arrivals: super::Arrivals::Even,
            wallets,
            funding,
            mix,
            amount,
            fee,
            vendor_field,
            nodes,
        }
    }
}

/// The rows of a file.
///
/// # Errors
/// The file cannot be read, or a line is no row. The message has its number, the text found and the allowed values.
fn read(file: &Path) -> Result<TraceRows, String> {
    let text = files::read_text(file, CHAIN_LIMIT).map_err(|why| why.to_string())?;
    parse(&text)
}

/// A row whose labels are not replaced by wallets yet.
struct Line<'a> {
    row: TraceRow,
    recipient: Option<&'a str>,
}

fn parse(text: &str) -> Result<TraceRows, String> {
    // Spreadsheets put a byte order mark before the first line.
    let mut lines = (1..).zip(text.strip_prefix('\u{feff}').unwrap_or(text).lines());
    let header = lines.next().map_or("", |(_, header)| header);
    let columns = columns(header)?;
    let mut wallets: BTreeMap<&str, u32> = BTreeMap::new();
    let mut read: Vec<Line<'_>> = Vec::new();
    for (number, line) in lines {
        let cells = cells(line);
        let wrong = |found: &str, allowed: String| {
            format!("line {number}: found '{}', allowed is {allowed}", files::printable(found))
        };
        if cells.len() != columns.len() {
            return Err(wrong(line, format!("{} cells", columns.len())));
        }
        let mut one = Line {
            row: TraceRow {
                at: Duration::ZERO,
                kind: None,
                sender: None,
                recipient: None,
                amount: None,
                vendor_field: None,
            },
            recipient: None,
        };
        for (column, cell) in columns.iter().zip(cells) {
            let number = |most: f64| cell.parse::<f64>().ok().filter(|number| (0.0..=most).contains(number));
            match *column {
                "seconds" => {
                    let seconds = number(SECONDS_LIMIT)
                        .ok_or_else(|| wrong(cell, format!("a number of seconds from 0 to {SECONDS_LIMIT}")))?;
                    one.row.at = Duration::from_micros((seconds * 1e6).round() as u64);
                    if let Some(before) = read.last().map(|before| before.row.at).filter(|before| *before > one.row.at)
                    {
                        return Err(wrong(
                            cell,
                            format!("{} or more, the time of the row before", before.as_secs_f64()),
                        ));
                    }
                }
                _ if cell.is_empty() => {}
                "kind" => {
                    let kind = Kind::deserialize(Value::from(cell));
                    one.row.kind = Some(kind.map_err(|_| wrong(cell, format!("one of {}", kinds())))?);
                }
                "sender" => {
                    let next = wallets.len() as u32;
                    let wallet = *wallets.entry(cell).or_insert(next);
                    if wallet >= WALLETS_LIMIT {
                        return Err(wrong(
                            cell,
                            format!("one of the {WALLETS_LIMIT} senders before, the most of a workload"),
                        ));
                    }
                    one.row.sender = Some(wallet);
                }
                "recipient" => one.recipient = Some(cell),
                "amount" => {
                    let coins =
                        number(COINS_LIMIT).and_then(|coins| Arktoshi::new(((coins * 1e8).round() as u64).max(1)));
                    one.row.amount =
                        Some(coins.ok_or_else(|| wrong(cell, format!("a number of coins from 0 to {COINS_LIMIT}")))?);
                }
                _ => {
                    let bytes = cell.parse::<usize>().ok().filter(|bytes| *bytes <= LENGTH_LIMIT as usize);
                    one.row.vendor_field = Some(
                        bytes
                            .ok_or_else(|| wrong(cell, format!("a whole number of bytes from 0 to {LENGTH_LIMIT}")))?,
                    );
                }
            }
        }
        read.push(one);
    }
    if read.is_empty() {
        return Err("found no row below the header, allowed is at least one".to_owned());
    }
    let recipient = |label: &str| match wallets.get(label) {
        Some(wallet) => Recipient::Wallet(*wallet),
        None => Recipient::Address(sha256(label.as_bytes())[..20].try_into().expect("20 of 32 bytes")),
    };
    let rows = read.into_iter().map(|line| TraceRow { recipient: line.recipient.map(recipient), ..line.row }).collect();
    Ok(TraceRows { rows, senders: wallets.len() as u32 })
}

/// The columns of a header, each once and in any order.
fn columns(header: &str) -> Result<Vec<&'static str>, String> {
    let found: Vec<Option<&'static str>> =
        cells(header).into_iter().map(|cell| COLUMNS.into_iter().find(|name| *name == cell)).collect();
    let columns: Vec<&'static str> = found.iter().copied().flatten().collect();
    let is_twice = |index: usize| columns[..index].contains(&columns[index]);
    match columns.len() == found.len() && columns.contains(&COLUMNS[0]) && !(0..columns.len()).any(is_twice) {
        true => Ok(columns),
        false => Err(format!(
            "line 1: found '{}', allowed is a header with '{}' and, each once, any of {}",
            files::printable(header),
            COLUMNS[0],
            COLUMNS[1..].join(", ")
        )),
    }
}

fn kinds() -> String {
    let name = |kind: &Kind| serde_json::to_value(kind).ok()?.as_str().map(str::to_owned);
    Kind::ALL.iter().filter_map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_with_what_they_say() {
        let text = "\u{feff}\"seconds\", recipient,kind,sender,amount,vendor_field\r\n0.5,,,,,\r\n1e1,bob,transfer,alice,1.25,0\n10,alice,htlc-lock,bob,0,255\n10.0000015,carol,,alice,,7\n";
        let TraceRows { rows, senders } = parse(text).expect("it is a load");
        let row = |micros| TraceRow {
            at: Duration::from_micros(micros),
            kind: None,
            sender: None,
            recipient: None,
            amount: None,
            vendor_field: None,
        };
        let carol = Recipient::Address(sha256(b"carol")[..20].try_into().expect("20 bytes"));
        let coins = |arktoshi| Arktoshi::new(arktoshi);
        assert_eq!(senders, 2);
        assert_eq!(
            rows[..],
            [
                row(500_000),
                TraceRow {
                    kind: Some(Kind::Transfer),
                    sender: Some(0),
                    recipient: Some(Recipient::Wallet(1)),
                    amount: coins(125_000_000),
                    vendor_field: Some(0),
                    ..row(10_000_000)
                },
                TraceRow {
                    kind: Some(Kind::HtlcLock),
                    sender: Some(1),
                    recipient: Some(Recipient::Wallet(0)),
                    amount: coins(1),
                    vendor_field: Some(255),
                    ..row(10_000_000)
                },
                TraceRow { sender: Some(0), recipient: Some(carol), vendor_field: Some(7), ..row(10_000_002) },
            ]
        );
    }

    #[test]
    fn lines_that_are_no_rows_are_named() {
        for (text, why) in [
            ("", "line 1: found '', allowed is a header with 'seconds' and, each once, any of kind, sender"),
            ("sender\na\n", "line 1: found 'sender', allowed is a header with 'seconds'"),
            ("seconds,seconds\n1,1\n", "line 1: found 'seconds,seconds'"),
            ("seconds,fee\n1,1\n", "line 1: found 'seconds,fee'"),
            ("seconds\n", "found no row below the header"),
            ("seconds\n1\n1,2\n", "line 3: found '1,2', allowed is 1 cells"),
            ("seconds\n-1\n", "line 2: found '-1', allowed is a number of seconds from 0 to 3200000000"),
            ("seconds\nnan\n", "line 2: found 'nan'"),
            ("seconds\n3200000001\n", "line 2: found '3200000001'"),
            ("seconds\n\n", "line 2: found ''"),
            ("seconds\n2\n1.5\n", "line 3: found '1.5', allowed is 2 or more, the time of the row before"),
            ("seconds,kind\n1,gift\n", "line 2: found 'gift', allowed is one of transfer, second-signature"),
            ("seconds,amount\n1,-1\n", "line 2: found '-1', allowed is a number of coins from 0 to 100000000"),
            ("seconds,amount\n1,100000001\n", "line 2: found '100000001'"),
            ("seconds,vendor_field\n1,256\n", "line 2: found '256', allowed is a whole number of bytes from 0 to 255"),
            ("seconds,vendor_field\n1,1.5\n", "line 2: found '1.5'"),
        ] {
            let found = parse(text).expect_err(text);
            assert!(found.starts_with(why), "{text}: {found}");
        }
        let many: String = (0..=WALLETS_LIMIT).map(|sender| format!("1,{sender}\n")).collect();
        let found = parse(&format!("seconds,sender\n{many}")).expect_err("too many");
        assert!(found.starts_with("line 10002: found '10000', allowed is one of the 10000 senders before"), "{found}");
    }
}
