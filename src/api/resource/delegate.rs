//! Delegates. Source: api.md 3, 4.1, 4.4.

use super::timestamp;
use crate::{
    api::table::{
        dialect::Spoken,
        field::{Cell, Field},
        frame::Frame,
        parameter::{ADDRESS, FROM_ZERO, PUBLIC_KEY, Parameter, RANGE, USERNAME, both, documented},
        row::{self, Member, write_members},
        rule::Rule,
        shape::{self, Shape},
    },
    ledger::{Balance, DelegateAttributes, Wallet},
};
use std::{fmt, sync::Arc};

/// The fields that `orderBy` takes.
#[rustfmt::skip]
pub const ORDERS: &[&str] = &[
    "approval", "forgedFees", "forgedRewards", "forgedTotal", "producedBlocks", "publicKey", "rank", "resigned",
    "username", "voteBalance", "votes",
];

/// The parameters that the list of delegates takes.
pub const FILTERS: &[Parameter] = &[
    both("orderBy", Rule::Order(ORDERS)),
    both("type", Rule::OneOf(&["resigned", "never-forged"])),
    both("address", ADDRESS),
    both("publicKey", PUBLIC_KEY),
    both("secondPublicKey", PUBLIC_KEY),
    both("vote", PUBLIC_KEY),
    both("username", USERNAME),
    both("balance", FROM_ZERO),
    both("voteBalance", FROM_ZERO),
    both("producedBlocks", FROM_ZERO),
];

/// The parameters that the search takes in its query beside paging.
pub const ORDERED: &[Parameter] = &[both("orderBy", Rule::Order(ORDERS))];

/// The parameters that the search takes in its body.
pub const SEARCH: &[Parameter] = &[
    documented("orderBy", Rule::Order(ORDERS)),
    both("address", ADDRESS),
    both("publicKey", PUBLIC_KEY),
    both("username", USERNAME),
    both("usernames", Rule::Several(&USERNAME, 1, 51)),
    both("approval", Rule::Percents),
    both("forgedFees", RANGE),
    both("forgedRewards", RANGE),
    both("forgedTotal", RANGE),
    both("producedBlocks", RANGE),
    both("voteBalance", RANGE),
];

/// A delegate with its wallet.
#[derive(Clone, Debug)]
pub struct DelegateRow {
    wallet: Arc<Wallet>,
    delegate: Arc<DelegateAttributes>,
}

impl DelegateRow {
    /// The delegate of a wallet, if it is one.
    pub fn of(wallet: &Arc<Wallet>) -> Option<Self> {
        let delegate = wallet.delegate.clone()?;
        Some(Self { wallet: wallet.clone(), delegate })
    }

    /// The wallet.
    pub fn wallet(&self) -> &Arc<Wallet> {
        &self.wallet
    }

    /// Its place in the order of registration.
    pub fn registered(&self) -> u32 {
        self.delegate.registered
    }

    /// True if the delegate is of a `type` that lists can be narrowed to.
    pub fn is_of_type(&self, name: &str) -> bool {
        match name {
            "resigned" => self.delegate.resigned,
            _ => self.delegate.produced_blocks == 0,
        }
    }

    fn forged_total(&self) -> Balance {
        self.delegate.forged_fees + self.delegate.forged_rewards
    }

    /// Share of the supply that votes for it.
    fn approval(&self, frame: &Frame<'_>) -> Percent {
        Percent::of(self.delegate.vote_balance.0, frame.state().supply().0)
    }

    /// Share of its slots that it used; 0 before the first one.
    fn productivity(&self) -> Percent {
        let produced = i128::from(self.delegate.produced_blocks);
        Percent::of(produced, produced + i128::from(self.delegate.missed_blocks))
    }
}

/// The fields by which delegates are filtered and ordered.
pub const FIELDS: &[Field<DelegateRow>] = &[
    Field::new("address", |row, _| Cell::shown(row.wallet.address)),
    Field::hex("publicKey", |row, _| Cell::shown_some(row.wallet.public_key)),
    Field::hex("secondPublicKey", |row, _| Cell::shown_some(row.wallet.second_public_key)),
    Field::hex("vote", |row, _| Cell::shown_some(row.wallet.vote)),
    Field::containing("username", |row, _| Cell::text(Some(&*row.delegate.username))),
    Field::new("usernames", |row, _| Cell::text(Some(&*row.delegate.username))),
    Field::new("balance", |row, _| Cell::number(row.wallet.balance.0)),
    Field::new("approval", |row, frame| Cell::number(row.approval(frame).0)),
    Field::new("forgedFees", |row, _| Cell::number(row.delegate.forged_fees.0)),
    Field::new("forgedRewards", |row, _| Cell::number(row.delegate.forged_rewards.0)),
    Field::new("forgedTotal", |row, _| Cell::number(row.forged_total().0)),
    Field::new("producedBlocks", |row, _| Cell::number(row.delegate.produced_blocks)),
    Field::new("rank", |row, _| row.delegate.rank.map_or(Cell::Missing, Cell::number)),
    Field::new("resigned", |row, _| if row.delegate.resigned { Cell::Flag(true) } else { Cell::Missing }),
    Field::new("voteBalance", |row, _| Cell::number(row.delegate.vote_balance.0)),
    Field::new("votes", |row, _| Cell::number(row.delegate.vote_balance.0)),
];

const MEMBERS: &[Member<DelegateRow>] = &[
    Member::new("username", Shape::Text, |row, _, slot| slot.put(&row.delegate.username)),
    Member::new("address", shape::ADDRESS, |row, _, slot| slot.text(row.wallet.address)),
    Member::new("publicKey", shape::KEY, |row, _, slot| slot.text_some(row.wallet.public_key)),
    Member::only("votes", Spoken::DOCUMENTED, Shape::Integer, |row, _, slot| slot.number(row.delegate.vote_balance)),
    Member::only("votes", Spoken::CORE26, shape::AMOUNT, |row, _, slot| slot.put(&row.delegate.vote_balance)),
    Member::some("rank", Shape::Integer, |row, _, slot| slot.put_some(row.delegate.rank)),
    Member::new("isResigned", Shape::Boolean, |row, _, slot| slot.put(&row.delegate.resigned)),
    Member::new("blocks", Shape::Table(|dialect, named| row::of_table(BLOCKS, dialect, named)), |row, frame, slot| {
        slot.members(BLOCKS, row, frame)
    }),
    Member::new(
        "production",
        Shape::Table(|dialect, named| row::of_table(PRODUCTION, dialect, named)),
        |row, frame, slot| slot.members(PRODUCTION, row, frame),
    ),
    Member::new("forged", Shape::Table(|dialect, named| row::of_table(FORGED, dialect, named)), |row, frame, slot| {
        slot.members(FORGED, row, frame)
    }),
];

const BLOCKS: &[Member<DelegateRow>] = &[
    Member::new("produced", Shape::Integer, |row, _, slot| slot.put(&row.delegate.produced_blocks)),
    Member::only("missed", Spoken::DOCUMENTED, Shape::Integer, |row, _, slot| slot.put(&row.delegate.missed_blocks)),
    Member::some(
        "last",
        Shape::Members(&[
            ("id", shape::BLOCK_ID, true),
            ("height", Shape::Integer, true),
            ("timestamp", timestamp::SHAPE, true),
        ]),
        |row, frame, slot| {
            let Some(last) = &row.delegate.last_block else { return };
            slot.object(|object| {
                object.member("id").text(last.0.id);
                object.member("height").put(&last.0.header.height);
                timestamp::write(object.member("timestamp"), &frame.view.tree().slots(), last.0.header.timestamp);
            });
        },
    ),
];

const PRODUCTION: &[Member<DelegateRow>] = &[
    Member::new("approval", Shape::Number, |row, frame, slot| slot.number(row.approval(frame))),
    Member::only("productivity", Spoken::DOCUMENTED, Shape::Number, |row, _, slot| slot.number(row.productivity())),
];

const FORGED: &[Member<DelegateRow>] = &[
    Member::only("fees", Spoken::DOCUMENTED, Shape::Integer, |row, _, slot| slot.number(row.delegate.forged_fees)),
    Member::only("rewards", Spoken::DOCUMENTED, Shape::Integer, |row, _, slot| {
        slot.number(row.delegate.forged_rewards)
    }),
    Member::only("total", Spoken::DOCUMENTED, Shape::Integer, |row, _, slot| slot.number(row.forged_total())),
    Member::only("fees", Spoken::CORE26, shape::AMOUNT, |row, _, slot| slot.put(&row.delegate.forged_fees)),
    Member::only("rewards", Spoken::CORE26, shape::AMOUNT, |row, _, slot| slot.put(&row.delegate.forged_rewards)),
    Member::only("total", Spoken::CORE26, shape::AMOUNT, |row, _, slot| slot.put(&row.forged_total())),
];

/// The shape of a delegate.
pub const SHAPE: Shape = Shape::Resource("Delegate", |dialect, named| row::of_table(MEMBERS, dialect, named));

/// Writes a delegate.
pub fn write(out: &mut Vec<u8>, row: &DelegateRow, frame: &Frame<'_>) {
    write_members(out, MEMBERS, row, frame);
}

/// Hundredths of a percent, printed as a JSON number of percent: `1.96`, `2`, `0.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Percent(i128);

impl Percent {
    /// The share of a part in a whole, rounded half up; nothing of nothing is 0.
    fn of(part: i128, whole: i128) -> Self {
        if whole == 0 {
            return Self(0);
        }
        Self((part * 20_000 + whole).div_euclid(2 * whole))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, rest) = (self.0.abs() / 100, self.0.abs() % 100);
        match rest {
            0 => write!(f, "{sign}{whole}"),
            rest if rest % 10 == 0 => write!(f, "{sign}{whole}.{}", rest / 10),
            rest => write!(f, "{sign}{whole}.{rest:02}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_print_as_javascript_prints_numbers() {
        for (part, whole, text) in [
            (245_098_000_000_000, 12_500_000_000_000_000, "1.96"),
            (1, 2, "50"),
            (1, 200, "0.5"),
            (1, 3, "33.33"),
            (2, 3, "66.67"),
            (1, 2_000, "0.05"),
            (0, 0, "0"),
            (-1, 8, "-12.5"),
        ] {
            assert_eq!(Percent::of(part, whole).to_string(), text);
        }
    }
}
