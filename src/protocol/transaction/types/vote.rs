//! A vote for a delegate, or its withdrawal. Source: protocol.md 3.4.

use super::{
    super::{
        BytesError, Rule, SchemaError, Transaction, TransactionBuilder,
        decode::WireReader,
        read::{JsonReader, address_looks, text_of},
        schema,
    },
    Asset, Pending, TransactionType, Vote, own,
    schema_parts::{self, reference},
};
use crate::protocol::Arktoshi;
use serde_json::{Value, json};

pub(crate) struct Type;

impl Transaction {
    /// Votes for a delegate, or withdraws a vote.
    pub fn vote(vote: Vote) -> TransactionBuilder {
        TransactionBuilder::new(Asset::Vote(vote))
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        Arktoshi::coins(1)
    }

    fn addon_bytes(&self) -> u64 {
        100
    }

    fn pending(&self) -> Pending {
        Pending::One
    }

    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::Vote(vote));
        out.extend([1, u8::from(vote.is_for())]);
        out.extend(vote.delegate().as_bytes());
    }

    fn write_signed_in_version_one(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::Vote(vote));
        out.extend(vote.to_string().as_bytes());
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        let votes = wire.byte("asset.votes")?;
        if votes != 1 {
            return Err(BytesError::Votes { votes });
        }
        let at = wire.at();
        let marker = match wire.byte("asset.votes")? {
            // The reference reads only the low hex digit.
            byte if wire.is_lax() => u8::from(byte & 15 == 1),
            byte => byte,
        };
        let key = wire.key("asset.votes")?;
        match marker {
            1 => Ok(Asset::Vote(Vote::For(key))),
            0 => Ok(Asset::Vote(Vote::Against(key))),
            found => Err(BytesError::Byte { at, found, allowed: "0x01 for a vote or 0x00 for an unvote" }),
        }
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::Vote(vote));
        Some(json!({ "votes": [vote.to_string()] }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        let root = json.members;
        // The wire lacks it, since it is the sender's own address. If the JSON has it, it must have the form of an address.
        root.get("recipientId").map_or(Ok(()), |found| address_looks("recipientId", found).map(|_| ()))?;
        vote(root.object("", "asset")?.list("asset", "votes")?, json.lax()).map(Asset::Vote)
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["votes"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let votes = schema_parts::list(1, 1, &reference("walletVote"));
        vec![schema_parts::recipient(), schema_parts::asset("votes", votes)]
    }
}

fn vote(votes: &[Value], lax: bool) -> Result<Vote, SchemaError> {
    let [vote] = votes else {
        return Err(SchemaError::of_list("asset.votes", votes.len(), Rule::Items { min: 1, max: 1 }));
    };
    let text = text_of("asset.votes[0]", vote)?;
    let wrong = || SchemaError::of_text("asset.votes[0]", text, Rule::Pattern(schema::VOTE));
    let key = |digits: &str| digits.parse().map_err(|_| wrong());
    match text.split_at_checked(1) {
        Some(("+", digits)) => Ok(Vote::For(key(digits)?)),
        Some(("|", digits)) if lax => Ok(Vote::Against(key(digits)?)),
        Some(("-", digits)) => Ok(Vote::Against(key(digits)?)),
        _ => Err(wrong()),
    }
}
