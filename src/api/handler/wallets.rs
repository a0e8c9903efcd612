//! Wallets and what they did. Source: api.md 4.3.

use super::transactions::{self, search::Scope};
use crate::{
    api::{
        http::{ApiError, Reply},
        resource::wallet::{self, WalletRow},
        table::{Call, Listing, Outcome, select},
    },
    ledger::Wallet,
    protocol::{PublicKey, transaction::Kind},
};
use std::sync::Arc;

const NOT_FOUND: ApiError = ApiError::NotFound("Wallet not found");
const RICHEST: (&str, bool) = ("balance", true);

/// `GET /api/wallets`.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    if call.parameters.order().unwrap_or(RICHEST) == RICHEST
        && !select::filters(wallet::MEMBERS, &call.parameters, call.frame().dialect)
    {
        return top(call);
    }
    Ok(call.list_rows(search(call, candidates(call).into_iter()), wallet::MEMBERS))
}

/// `POST /api/wallets/search`.
pub(crate) fn search_all(call: &Call<'_>) -> Outcome {
    Ok(call.list_rows(search(call, candidates(call).into_iter()), wallet::FOUND))
}

/// `GET /api/wallets/top`.
pub(crate) fn top(call: &Call<'_>) -> Outcome {
    let wallets = call.head.lists().wallets(call.head.state());
    let row = |index: u64| wallets.get(usize::try_from(index).ok()?).cloned();
    Ok(call.list_rows(call.page().pick(wallets.len() as u64, row), wallet::MEMBERS))
}

/// `GET /api/wallets/{id}`.
pub(crate) fn show(call: &Call<'_>) -> Outcome {
    Ok(call.show_row(wallet::MEMBERS, find(call)?))
}

/// `GET /api/wallets/{id}/transactions`.
pub(crate) fn transactions(call: &Call<'_>) -> Outcome {
    let party = Some(find(call)?.address);
    Ok(transactions::list_in(call, Scope { party, ..Scope::default() }))
}

/// `GET /api/wallets/{id}/transactions/sent`.
pub(crate) fn sent(call: &Call<'_>) -> Outcome {
    Ok(list_sent(call, find(call)?, None))
}

/// `GET /api/wallets/{id}/transactions/received`.
pub(crate) fn received(call: &Call<'_>) -> Outcome {
    let recipient = Some(find(call)?.address);
    Ok(transactions::list_in(call, Scope { recipient, ..Scope::default() }))
}

/// `GET /api/wallets/{id}/votes`.
pub(crate) fn votes(call: &Call<'_>) -> Outcome {
    Ok(list_sent(call, find(call)?, Some(Kind::Vote)))
}

/// The wallets voting for a delegate, for its list of voters.
pub(crate) fn voting_for(call: &Call<'_>, delegate: &PublicKey) -> Reply {
    let voters = call.head.state().wallets().filter(|wallet| wallet.votes().any(|vote| vote == *delegate)).cloned();
    call.list_rows(search(call, voters), wallet::FOUND)
}

/// The transactions that a wallet sent. A cold wallet has sent nothing and has no key, so a key that no wallet has
/// stands in.
fn list_sent(call: &Call<'_>, wallet: &Wallet, kind: Option<Kind>) -> Reply {
    let sender = wallet.public_key.unwrap_or(PublicKey::from_bytes([0; 33]));
    transactions::list_in(call, Scope { sender: Some(sender), kind, ..Scope::default() })
}

/// The wallet that the path names.
pub(crate) fn find<'c>(call: &'c Call<'_>) -> Result<&'c Arc<Wallet>, ApiError> {
    call.frame().find_wallet(call.argument("id")).ok_or(NOT_FOUND)
}

fn search(call: &Call<'_>, rows: impl Iterator<Item = WalletRow>) -> Listing<WalletRow> {
    let mut rows = call.matching(wallet::MEMBERS, rows);
    rows.sort_unstable_by_key(|row| row.first_seen);
    call.ordered(wallet::MEMBERS, rows, Some(RICHEST))
}

/// A superset of the matching wallets.
fn candidates(call: &Call<'_>) -> Vec<WalletRow> {
    let names = ["address", "publicKey", "senderPublicKey", "username"];
    if let Some(addresses) = call.parameters.texts("addresses") {
        return addresses.iter().filter_map(|address| call.frame().find_wallet(address).cloned()).collect();
    }
    match names.iter().find_map(|name| call.parameters.text(name)) {
        Some(id) => call.frame().find_wallet(id).cloned().into_iter().collect(),
        None => call.head.state().wallets().cloned().collect(),
    }
}
