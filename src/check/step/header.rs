//! The header of a block.

use super::{BlockStep, equal};
use crate::{
    ledger::Balance,
    protocol::{
        BlockId, Height, TransactionId,
        crypto::{ecdsa, sha256},
    },
};
use std::collections::BTreeSet;

pub(super) fn content(step: &BlockStep<'_>) -> Result<(), String> {
    let (block, milestones) = (step.block, &step.tree.config().milestones);
    let (header, milestone) = (&block.header, milestones.at(block.header.height));
    let mut bytes = header.to_bytes(milestones, true);
    match step.tree.rules().ledger.finality.asks_forgers() {
        true if header.forged_before == Height(0) => {}
        true => bytes.extend(header.forged_before.0.to_le_bytes()),
        false => equal("height forged before", header.forged_before, Height(0))?,
    }
    equal("id", block.id, BlockId::of_hash(sha256(&bytes), milestone.block.id_full_sha256))?;
    if header.previous != Some(step.parent.id()) {
        return Err(format!("it names another block than its parent {}", step.parent.id()));
    }
    equal("height", header.height, step.parent.height().next())?;
    equal("version", header.version, milestone.block.version)?;
    equal("transactions", header.number_of_transactions as usize, block.transactions.len())?;
    let amount: u128 = block.transactions.iter().map(|one| u128::from(one.amount().value())).sum();
    equal("total amount", u128::from(header.total_amount.value()), amount)?;
    let fee: u128 = block.transactions.iter().map(|one| u128::from(one.fee().value())).sum();
    equal("total fee", u128::from(header.total_fee.value()), fee)?;
    let ids: Vec<TransactionId> = block.transactions.iter().map(|one| one.id()).collect();
    let joined: Vec<u8> = ids.iter().flat_map(|id| id.0).collect();
    equal("payload hash", hex::encode(header.payload_hash), hex::encode(sha256(&joined)))?;
    if ids.iter().collect::<BTreeSet<_>>().len() < ids.len() {
        return Err("it holds a transaction twice".to_owned());
    }
    let expired = |expiration: u32| expiration > 0 && expiration <= header.height.0;
    match block.transactions.iter().find(|one| one.transaction().expiration().is_some_and(expired)) {
        Some(one) => Err(format!("transaction {} has expired", one.id())),
        None => Ok(()),
    }
}

pub(super) fn signature(step: &BlockStep<'_>) -> Result<(), String> {
    let header = &step.block.header;
    let config = step.tree.config();
    let hash = header.hash_for_signature(&config.milestones);
    let holds = ecdsa::verify(&hash, &header.signature, &header.generator, config.crypto);
    if holds { Ok(()) } else { Err(format!("its signature is not {}'s", header.generator)) }
}

pub(super) fn reward(step: &BlockStep<'_>) -> Result<(), String> {
    let header = &step.block.header;
    equal("reward", header.reward, step.tree.config().milestones.at(header.height).reward)
}

pub(super) fn supply(step: &BlockStep<'_>) -> Result<(), String> {
    let reward = step.tree.config().milestones.at(step.block.header.height).reward;
    equal("supply", step.after.supply(), step.before.supply() + Balance::from(reward))
}
