//! Parameters that change with height. Source: protocol.md 5.2.
//!
//! A list of milestones is read once, each merged over its predecessors; afterwards [`Milestones::at`] is a binary search that returns
//! a reference. An invalid list is refused with the height and the key at fault.

mod date;
mod merge;
mod reader;

use super::{Arktoshi, Height, transaction::Kind};
use serde_json::Value;

pub use super::transaction::StaticFees;

/// The parameters in force from a height on, merged over all milestones before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Milestone {
    /// The height from which the parameters are in force. The first milestone has 1.
    pub height: Height,
    /// Reward of a block.
    pub reward: Arktoshi,
    /// The number of delegates that forge in a round, from 1 to 1,000,000.
    pub active_delegates: u32,
    /// Slot length \[s\]; slot arithmetic uses only that of height 1.
    pub blocktime: u32,
    /// The rules for blocks.
    pub block: BlockRules,
    /// Limit of a vendor field \[bytes\], at most 255: its length has one byte on the wire. Without one no text is allowed.
    pub vendor_field_length: Option<usize>,
    /// Limit of the payments in a multipayment. It is 500 if no milestone sets it, or if its value counts as false: 0, null, false or
    /// "".
    pub multi_payment_limit: usize,
    /// True if transactions have version 2 and the types of AIP11. Before that they have version 1.
    pub aip11: bool,
    /// Needs `aip11`, and both exactly true.
    pub htlc_enabled: bool,
    /// True if a transaction may carry a second signature although its sender has no second key.
    pub ignore_invalid_second_signature_field: bool,
    /// True if a block may hold transfers past their expiration height. Only a network named `devnet` follows it.
    pub ignore_expired_transactions: bool,
    /// The static fee of each type.
    pub fees: StaticFees,
    /// The merged milestone as JSON, members in the order of the files, as the API shows it.
    pub json: Value,
}

/// The rules for blocks from a height on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRules {
    /// The version that a block has to have.
    pub version: u32,
    /// The largest number of transactions of a block, except of genesis. 2^32-1 if no milestone sets it.
    pub max_transactions: usize,
    /// \[bytes\]
    pub max_payload: usize,
    /// True if a block id is the whole SHA256, false if it is its first eight bytes.
    pub id_full_sha256: bool,
    /// True if the timestamps of version 1 transactions are not compared with the block's.
    pub accept_expired_transaction_timestamps: bool,
}

/// All milestones of a network, by height.
#[derive(Clone, Debug, PartialEq)]
pub struct Milestones {
    merged: Vec<Milestone>,
    /// Their heights. Every message that carries a block looks up the milestone in force.
    heights: Vec<Height>,
    /// The heights that nodes announce, see [`Milestones::is_milestone`].
    announced: Vec<Height>,
    epoch_ms: i64,
}

impl Milestones {
    /// From the JSON array of a `milestones.json`, in any order of heights.
    ///
    /// ```
    /// use dposlab::protocol::Milestones;
    ///
    /// let error = Milestones::from_json(&serde_json::json!([{ "height": 2 }])).unwrap_err();
    /// assert_eq!(error.to_string(), "milestones: the first height is 2, allowed is 1");
    /// ```
    pub fn from_json(list: &Value) -> Result<Self, MilestoneError> {
        let merge::MergedMilestones { list, announced } = merge::merged(list)?;
        let epoch_ms = reader::epoch(&list[0])?;
        let merged = list.into_iter().map(reader::milestone).collect::<Result<Vec<_>, _>>()?;
        check_rounds(&merged)?;
        let heights = merged.iter().map(|milestone| milestone.height).collect();
        Ok(Self { merged, heights, announced, epoch_ms })
    }

    /// The milestone in force at a height; below height 1 that of height 1.
    pub fn at(&self, height: Height) -> &Milestone {
        let later = self.heights.partition_point(|begins| *begins <= height);
        &self.merged[later.saturating_sub(1)]
    }

    /// All of them, each merged over its predecessors, ascending by height; never empty.
    pub fn all(&self) -> &[Milestone] {
        &self.merged
    }

    /// Returns true if nodes treat a height as one where rules change. They do not if the file has the height as text, although the rules
    /// do change there.
    pub fn is_milestone(&self, height: Height) -> bool {
        self.announced.binary_search(&height).is_ok()
    }

    /// The epoch as Unix time \[ms\]: that of the milestone at height 1.
    pub fn epoch_ms(&self) -> i64 {
        self.epoch_ms
    }

    /// The milestones as a network of this name follows them: only the one named devnet ignores that transactions expire.
    pub(super) fn of_network(mut self, name: &str) -> Self {
        for milestone in &mut self.merged {
            milestone.ignore_expired_transactions &= name == "devnet";
        }
        self
    }

    /// The first milestone above a height.
    pub fn next_after(&self, height: Height) -> Option<&Milestone> {
        self.merged.get(self.merged.partition_point(|milestone| milestone.height <= height))
    }

    /// The milestones of ARK's mainnet, as the reference ships them.
    pub fn mainnet() -> Self {
        preset(include_str!("milestones/mainnet.json"))
    }

    /// The milestones of ARK's devnet, as the reference ships them.
    pub fn devnet() -> Self {
        preset(include_str!("milestones/devnet.json"))
    }

    /// The milestones of the reference's testnet, which generated networks build on.
    pub fn testnet() -> Self {
        preset(include_str!("milestones/testnet.json"))
    }

    /// The milestones of the network in the reference's unit tests.
    pub fn unitnet() -> Self {
        preset(include_str!("milestones/unitnet.json"))
    }
}

fn preset(text: &str) -> Milestones {
    let list = serde_json::from_str(text).expect("the presets are JSON, see the test");
    Milestones::from_json(&list).expect("the presets are allowed, see the test")
}

/// The number of delegates may change only where a round of the old number has ended.
fn check_rounds(merged: &[Milestone]) -> Result<(), MilestoneError> {
    let mut before = &merged[0];
    for milestone in merged {
        if milestone.active_delegates == before.active_delegates {
            continue;
        }
        if !(milestone.height.0 - before.height.0).is_multiple_of(before.active_delegates) {
            return Err(MilestoneError::InsideRound {
                height: milestone.height,
                previous: before.height,
                delegates: before.active_delegates,
            });
        }
        before = milestone;
    }
    Ok(())
}

/// The reason why a list of milestones is refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum MilestoneError {
    #[error("milestones: found {found}, allowed is an array of at least one object")]
    NotAList { found: String },
    #[error("milestones: the first height is {found}, allowed is 1")]
    FirstHeight { found: String },
    #[error(
        "milestones: one has no `height`, allowed is that only if the others ascend: it belongs to the one before it"
    )]
    NoOrder,
    #[error("milestone of height {height}: `{key}` is missing, needed is {allowed}")]
    Missing { height: Height, key: String, allowed: String },
    #[error("milestone of height {height}: `{key}` is {found}, allowed is {allowed}")]
    Wrong { height: Height, key: String, found: String, allowed: String },
    #[error(
        "milestone of height {height}: `activeDelegates` changes inside a round; allowed are heights a multiple of \
         {delegates} after {previous}"
    )]
    InsideRound { height: Height, previous: Height, delegates: u32 },
}

impl Milestone {
    /// The static fee of a kind; for a multisignature registration that of one part of it, see [`StaticFees::of`].
    pub fn fee(&self, kind: Kind) -> Arktoshi {
        self.fees.get(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn changed(key: &str, value: Value) -> Result<Milestones, MilestoneError> {
        let mut list: Value = serde_json::from_str(include_str!("milestones/testnet.json")).unwrap();
        list[0][key] = value;
        Milestones::from_json(&list)
    }

    /// Members laid over those of the first milestone.
    fn changed_part(key: &str, value: Value) -> Result<Milestones, MilestoneError> {
        let mut list: Value = serde_json::from_str(include_str!("milestones/testnet.json")).unwrap();
        list.as_array_mut().unwrap().insert(1, json!({ "height": 1, key: value }));
        Milestones::from_json(&list)
    }

    #[test]
    fn the_presets_say_what_the_contract_says() {
        let (mainnet, devnet, unitnet) = (Milestones::mainnet(), Milestones::devnet(), Milestones::unitnet());
        let testnet = Milestones::testnet();
        assert!(!testnet.at(Height(1)).aip11 && testnet.at(Height(2)).aip11);
        assert_eq!(testnet.at(Height(75_599)).reward, Arktoshi::ZERO);
        assert_eq!(testnet.at(Height(75_600)).reward, Arktoshi::coins(2));
        assert_eq!(testnet.at(Height(u32::MAX)).height, Height(1_000_000_000));
        assert_eq!(testnet.at(Height(0)).height, Height(1));
        assert!(testnet.is_milestone(Height(100_000)) && !testnet.is_milestone(Height(99_999)));
        assert_eq!(testnet.next_after(Height(2)).unwrap().height, Height(75_600));
        assert!(testnet.next_after(Height(1_000_000_000)).is_none());
        assert!(mainnet.all().iter().all(|milestone| !milestone.htlc_enabled));
        assert_eq!(devnet.at(Height(910_000)).block.max_transactions, 500);
        assert!(unitnet.at(Height(1)).aip11);
        assert_eq!(unitnet.epoch_ms(), 1_490_101_200_000);
        assert_eq!(testnet.at(Height(2)).fee(Kind::BusinessUpdate), Arktoshi::coins(50));
    }

    #[test]
    fn a_merged_milestone_keeps_members_and_their_order() {
        let milestones = Milestones::testnet();
        let last = &milestones.all()[4].json;
        assert_eq!(
            last["block"],
            json!({ "version": 0, "maxTransactions": 150, "maxPayload": 2097152, "idFullSha256": true })
        );
        let keys: Vec<_> = last.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys[..3], ["height", "reward", "activeDelegates"]);
        assert_eq!(last["fees"]["staticFees"]["vote"], 100_000_000);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = changed("blocktime", json!(0)).unwrap_err().to_string();
        assert_eq!(error, "milestone of height 1: `blocktime` is 0, allowed is a whole number from 1 to 4294967295");
        let error = changed("epoch", json!("yesterday")).unwrap_err().to_string();
        assert!(error.contains("`epoch` is \"yesterday\""), "{error}");
        let error = changed("fees", json!({ "staticFees": { "vote": -1 } })).unwrap_err().to_string();
        assert!(error.contains("`fees.staticFees.vote` is -1"), "{error}");
        assert!(matches!(Milestones::from_json(&json!({})), Err(MilestoneError::NotAList { .. })));
        assert!(matches!(Milestones::from_json(&json!([])), Err(MilestoneError::NotAList { .. })));
        for (key, value) in
            [("block", json!(null)), ("block", json!({ "version": "0" })), ("block", json!({ "maxPayload": -1 }))]
        {
            let error = changed_part(key, value).unwrap_err().to_string();
            assert!(error.contains("`block."), "{error}");
        }
        assert!(matches!(Milestones::from_json(&json!([{ "height": 1 }])), Err(MilestoneError::Missing { .. })));
    }

    /// As files of other networks have them. The suite `tests/clients/protocol` compares all of this with the reference's library.
    #[test]
    fn a_value_means_what_the_reference_makes_of_it() {
        let first = |key: &str, value: Value| changed(key, value).unwrap().at(Height(1)).clone();
        assert_eq!(first("reward", json!("200000000")).reward, Arktoshi::coins(2));
        assert_eq!(first("activeDelegates", json!("51")).active_delegates, 51);
        assert_eq!(first("vendorFieldLength", json!(512)).vendor_field_length, Some(255));
        assert_eq!(first("vendorFieldLength", json!("abc")).vendor_field_length, None);
        assert_eq!(first("multiPaymentLimit", json!(0)).multi_payment_limit, 500);
        assert_eq!(first("multiPaymentLimit", json!("0")).multi_payment_limit, 0);
        assert_eq!(first("fees", json!(null)).fees, StaticFees::default());
        let aip11 = first("aip11", json!(1));
        assert!(aip11.aip11 && !aip11.htlc_enabled);
        let part = changed_part("block", json!({ "maxTransactions": "50", "maxPayload": null, "idFullSha256": "yes" }))
            .unwrap();
        let block = part.at(Height(1)).block;
        assert_eq!((block.max_transactions, block.max_payload, block.id_full_sha256), (50, 0, true));
        assert_eq!(changed("epoch", json!("2021-11-08T13:04:13.688Z")).unwrap().epoch_ms(), 1_636_376_653_688);
    }

    #[test]
    fn heights_are_numbers_of_any_form_and_later_ones_go_over_earlier_ones() {
        let mut list: Value = serde_json::from_str(include_str!("milestones/testnet.json")).unwrap();
        list[0]["height"] = json!(0);
        for more in [
            json!({ "height": "500", "reward": 5 }),
            json!({ "height": 400.5, "reward": 4 }),
            json!({ "height": 300, "reward": 2 }),
            json!({ "height": 300, "reward": 3 }),
            json!({ "height": 1e10, "reward": -1 }),
        ] {
            list.as_array_mut().unwrap().push(more);
        }
        let milestones = Milestones::from_json(&list).unwrap();
        let reward = |height| milestones.at(Height(height)).reward.value();
        assert_eq!([1, 299, 300, 400, 401, 499, 500].map(reward), [0, 0, 3, 3, 4, 4, 5]);
        assert_eq!(
            [1, 2, 300, 401, 500].map(|height| milestones.is_milestone(Height(height))),
            [false, true, true, false, false]
        );
        let mut list = json!([list[0], { "vendorFieldLength": 100 }, { "height": 7, "vendorFieldLength": 64 }]);
        let milestones = Milestones::from_json(&list).unwrap();
        assert_eq!(
            [1, 6, 7].map(|height| milestones.at(Height(height)).vendor_field_length),
            [Some(100), Some(100), Some(64)]
        );
        list[0]["height"] = json!(1);
        list[2]["height"] = json!(-7);
        assert_eq!(Milestones::from_json(&list), Err(MilestoneError::NoOrder));
    }

    #[test]
    fn delegates_change_only_between_rounds() {
        let mut list: Value = serde_json::from_str(include_str!("milestones/testnet.json")).unwrap();
        list.as_array_mut().unwrap().push(json!({ "height": 52, "activeDelegates": 4 }));
        list.as_array_mut().unwrap().push(json!({ "height": 57, "activeDelegates": 5 }));
        let error = Milestones::from_json(&list).unwrap_err();
        assert_eq!(error, MilestoneError::InsideRound { height: Height(57), previous: Height(52), delegates: 4 });
        list[6]["height"] = json!(60);
        let milestones = Milestones::from_json(&list).unwrap();
        assert_eq!(milestones.at(Height(60)).active_delegates, 5);
        assert_eq!(milestones.at(Height(59)).active_delegates, 4);
    }
}
