//! The check that a transaction carries the signatures that its sender owes. Source: consensus.md 4.4, 4.5 type 4, 8 Q21.

use super::{
    BlockStep,
    account::{Account, Owners},
};
use crate::protocol::{Asset, SignedTransaction};

/// Checks that a transaction carries the signatures that its sender owes, by the sender's account in the middle of the
/// block.
///
/// # Errors
/// A signature is missing, wrong or superfluous, or the key of the sender's wallet is another one. Or the sender became a multisignature
/// wallet only in this block, where the rules demand an earlier one. The error gives the reason.
pub(super) fn authorised(
    step: &BlockStep<'_>,
    transaction: &SignedTransaction,
    sender: &Account,
) -> Result<(), String> {
    let content = transaction.transaction();
    if sender.key.is_some_and(|key| key != content.sender) {
        return Err("its sender's wallet is known by another key".to_owned());
    }
    let registers = matches!(content.asset, Asset::MultiSignature { .. });
    match &sender.owners {
        Some(owners) => signed_by_owners(step, transaction, owners)?,
        None if !transaction.verified(step.tree.config().crypto) => return Err("its sender did not sign it".to_owned()),
        None if !content.signatures.is_empty() && !registers => {
            return Err("it is signed for a multisignature wallet, which its sender is not".to_owned());
        }
        None => {}
    }
    match &sender.second {
        Some(key) if !transaction.verify_second(key, step.tree.config().crypto) => {
            Err("the second signature is not there".to_owned())
        }
        None if content.second_signature.is_some() => {
            Err("it has a second signature, and its sender has no second key".to_owned())
        }
        _ => Ok(()),
    }
}

fn signed_by_owners(step: &BlockStep<'_>, transaction: &SignedTransaction, owners: &Owners) -> Result<(), String> {
    if !matches!(transaction.verify_multi(owners.min, &owners.keys, step.tree.config().crypto), Ok(true)) {
        return Err(format!("fewer than {} of its sender's owners signed it", owners.min));
    }
    let before = step.before.wallet(&transaction.sender_address());
    let known_before = before.is_some_and(|wallet| wallet.multi_signature.is_some());
    if step.tree.rules().ledger.multi_signature_waits_for_block && !known_before {
        return Err("its sender became a multisignature wallet in this block only".to_owned());
    }
    Ok(())
}

/// Checks the signatures of a registration of a multisignature wallet.
///
/// # Errors
/// Its keys or signatures are wrong.
pub(super) fn registration(step: &BlockStep<'_>, transaction: &SignedTransaction) -> Result<(), String> {
    let Asset::MultiSignature { min, public_keys: keys } = transaction.asset() else { return Ok(()) };
    let count = keys.len();
    if *min < 1 || usize::from(*min) > count || count > 16 {
        return Err(format!("any {min} of {count} keys is no rule for a wallet"));
    }
    let signatures = transaction.transaction().signatures.len();
    if signatures != count {
        return Err(format!("it has {signatures} signatures for {count} keys"));
    }
    let needed = if step.tree.rules().ledger.registration_checks_only_min { usize::from(*min) } else { count };
    match transaction.verify_multi(needed as u8, keys, step.tree.config().crypto) {
        Ok(true) => Ok(()),
        _ => Err(format!("fewer than {needed} of the owners to be signed it")),
    }
}
