//! Delegates. Source: api.md 3, 4.1, 4.4.

use super::block::{self, BlockRow};
use crate::{
    api::table::{
        DialectSet, Frame, Member, Parameter, Rule, Shape, both,
        parameter::{ADDRESS, PUBLIC_KEY, USERNAME},
        row, shape,
    },
    ledger::{Balance, DelegateAttributes, Wallet},
};
use std::{fmt, sync::Arc};

/// The order of a list.
#[rustfmt::skip]
pub(crate) const ORDERED: &[Parameter] = &row::ordered(MEMBERS, &[
    "approval", "forgedFees", "forgedRewards", "forgedTotal", "producedBlocks", "publicKey", "rank", "resigned",
    "username", "voteBalance", "votes",
]);

/// The type that the list of delegates takes.
pub(crate) const TYPE: &[Parameter] = &[both("type", Rule::OneOf(&["resigned", "never-forged"]))];

/// The parameters that the list of delegates takes.
#[rustfmt::skip]
pub(crate) const FILTERS: &[Parameter] = &row::filters(MEMBERS, [
    "address", "publicKey", "secondPublicKey", "vote", "username", "balance", "voteBalance", "producedBlocks",
]);

/// The parameters that the search takes in its body.
#[rustfmt::skip]
pub(crate) const SEARCH: &[Parameter] = &row::searched(MEMBERS, [
    "address", "publicKey", "username", "usernames", "approval", "forgedFees", "forgedRewards", "forgedTotal",
    "producedBlocks", "voteBalance",
]);

/// A delegate with its wallet.
#[derive(Clone, Debug)]
pub(crate) struct DelegateRow {
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

    /// True if the delegate passes the filter `type` of lists: `resigned` or `never-forged`.
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

type Row = Member<DelegateRow>;

/// The members of a delegate.
pub(crate) const MEMBERS: &[Row] = &[
    Row::new("username", Shape::Text, |row, _| (&*row.delegate.username).into()).asked_in_part(USERNAME),
    Row::hidden("usernames", |row, _| (&*row.delegate.username).into()).asked(Rule::Several(&USERNAME, 1, 51)),
    Row::new("address", shape::ADDRESS, |row, _| row.wallet.address.into()).asked(ADDRESS),
    Row::new("publicKey", shape::KEY, |row, _| row.wallet.public_key.into()).asked(PUBLIC_KEY),
    Row::hidden("secondPublicKey", |row, _| row.wallet.second_public_key.into()).asked(PUBLIC_KEY),
    Row::hidden("vote", |row, _| row.wallet.vote.into()).asked(PUBLIC_KEY),
    Row::hidden("balance", |row, _| row.wallet.balance.into()).ranged(),
    Row::hidden("voteBalance", |row, _| row.delegate.vote_balance.into()).ranged(),
    Row::new("votes", shape::NUMBER_OR_AMOUNT, |row, _| row.delegate.vote_balance.into()),
    Row::some("rank", Shape::Integer, |row, _| row.delegate.rank.into()),
    Row::new("isResigned", Shape::Boolean, |row, _| row.delegate.resigned.into()),
    Row::hidden("resigned", |row, _| row.delegate.resigned.then_some(true).into()),
    Row::hidden("producedBlocks", |row, _| row.delegate.produced_blocks.into()).ranged(),
    Row::hidden("approval", |row, frame| row.approval(frame).0.into()).asked(Rule::Percents),
    Row::hidden("forgedFees", |row, _| row.delegate.forged_fees.into()).ranged(),
    Row::hidden("forgedRewards", |row, _| row.delegate.forged_rewards.into()).ranged(),
    Row::hidden("forgedTotal", |row, _| row.forged_total().into()).ranged(),
    Row::nested(
        "blocks",
        &[
            Row::new("produced", Shape::Integer, |row, _| row.delegate.produced_blocks.into()),
            Row::new("missed", Shape::Integer, |row, _| row.delegate.missed_blocks.into()).only(DialectSet::DOCUMENTED),
            Row::some_by("last", Shape::Table(&LAST), |row, frame, slot| {
                let last = row.delegate.last_block.as_ref().map(|last| BlockRow::Whole(last.0.clone()));
                slot.some_members(LAST, last.as_ref(), frame);
            }),
        ],
    ),
    Row::nested(
        "production",
        &[
            Row::by("approval", Shape::Number, |row, frame, slot| slot.number(row.approval(frame))),
            Row::by("productivity", Shape::Number, |row, _, slot| slot.number(row.productivity()))
                .only(DialectSet::DOCUMENTED),
        ],
    ),
    Row::nested(
        "forged",
        &[
            Row::new("fees", shape::NUMBER_OR_AMOUNT, |row, _| row.delegate.forged_fees.into()),
            Row::new("rewards", shape::NUMBER_OR_AMOUNT, |row, _| row.delegate.forged_rewards.into()),
            Row::new("total", shape::NUMBER_OR_AMOUNT, |row, _| row.forged_total().into()),
        ],
    ),
];

/// The members of a delegate's last block.
const LAST: &[Member<BlockRow>] = &[block::ID, block::HEIGHT, block::INSTANT];

/// The shape of a delegate.
pub(crate) const SHAPE: Shape = Shape::Resource("Delegate", &MEMBERS);

/// Hundredths of a percent, printed as a JSON number of percent: `1.96`, `2`, `0.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Percent(i128);

impl Percent {
    /// The share of `part` in `whole`, rounded half up. It is 0 if `whole` is 0.
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
