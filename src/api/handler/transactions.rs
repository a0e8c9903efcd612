//! Transactions, confirmed and pending. Source: api.md 4.2, 4.6.

use super::{Call, blocks};
use crate::{
    api::{
        ApiError, Reply, field,
        page::{Estimate, Listing},
        resource::transaction::{self, TransactionRow},
        view::Place,
    },
    ledger::Link,
    protocol::{Address, Asset, PublicKey, SignedTransaction, TransactionId, transaction::Kind},
};
use std::{cmp::Reverse, sync::Arc};

const NOT_FOUND: ApiError = ApiError::NotFound("Transaction not found");

type Outcome = Result<Reply, ApiError>;

/// What a list is narrowed to by its path, beside what its query asks for.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub block: Option<Arc<Link>>,
    pub sender: Option<PublicKey>,
    pub recipient: Option<Address>,
    /// In any role.
    pub party: Option<Address>,
    pub kind: Option<Kind>,
}

/// `GET /api/transactions`.
pub fn list(call: &Call<'_>) -> Outcome {
    Ok(list_in(call, Scope::default()))
}

/// `GET /api/blocks/{id}/transactions`.
pub fn of_block(call: &Call<'_>) -> Outcome {
    let block = blocks::find(call, call.argument("id")).ok_or(ApiError::NotFound("Block not found"))?;
    Ok(list_in(call, Scope { block: Some(block), ..Scope::default() }))
}

/// `GET /api/transactions/{id}`.
pub fn show(call: &Call<'_>) -> Outcome {
    let place = find(call).ok_or(NOT_FOUND)?;
    Ok(show_row(call, &TransactionRow::confirmed(place)))
}

/// `GET /api/transactions/unconfirmed`.
pub fn unconfirmed(call: &Call<'_>) -> Outcome {
    let listing = call.page().cut(call.head.pending().collect());
    let transform = call.parameters.transform();
    Ok(call.list(listing, |out, pending: &Arc<SignedTransaction>, frame| {
        transaction::write(out, &TransactionRow::pending(pending.clone()), frame, transform);
    }))
}

/// `GET /api/transactions/unconfirmed/{id}`.
pub fn show_unconfirmed(call: &Call<'_>) -> Outcome {
    let id = call.argument("id").parse().map_err(|_| NOT_FOUND)?;
    let pending = call.head.pending_by_id(&id).ok_or(NOT_FOUND)?;
    Ok(show_row(call, &TransactionRow::pending(pending.clone())))
}

/// The confirmed transaction that the path names.
pub fn find(call: &Call<'_>) -> Option<Place> {
    let id: TransactionId = call.argument("id").parse().ok()?;
    call.context.view.place(&call.head, &id)
}

/// One transaction in the shape asked for.
pub fn show_row(call: &Call<'_>, row: &TransactionRow) -> Reply {
    call.show(|out, frame| transaction::write(out, row, frame, call.parameters.transform()))
}

/// The confirmed transactions of a scope that pass the query's filters.
pub fn list_in(call: &Call<'_>, scope: Scope) -> Reply {
    let listing = match Search::new(call, scope) {
        Some(search) => search.run().with_estimate(Estimate::WhenFullOrEmpty),
        None => Listing::empty(),
    };
    let transform = call.parameters.transform();
    call.list(listing, |out, row, frame| transaction::write(out, row, frame, transform))
}

/// A search for confirmed transactions.
struct Search<'s> {
    call: &'s Call<'s>,
    scope: Scope,
    /// Both of them must be the sender: what the path says and what the query says.
    senders: Vec<PublicKey>,
    recipient: Option<Address>,
    /// One of them must be its sender or its stored recipient.
    addresses: Vec<Address>,
    /// In any role.
    owner: Option<Address>,
    /// A type is asked for without its group.
    core_types_only: bool,
}

impl<'s> Search<'s> {
    /// `None` if a sender is asked for whose key nobody knows.
    fn new(call: &'s Call<'s>, scope: Scope) -> Option<Self> {
        let parameters = &call.parameters;
        let mut senders: Vec<PublicKey> = scope.sender.into_iter().collect();
        if let Some(key) = parameters.text("senderPublicKey") {
            senders.push(key.parse().ok()?);
        }
        if let Some(address) = parameters.text("senderId") {
            senders.push(call.frame().find_wallet(address)?.public_key?);
        }
        let recipient = match parameters.text("recipientId") {
            // Well-formed and nobody's: the wallet of no transaction.
            Some(address) => Some(address.parse().unwrap_or(Address::from_bytes([0; 21]))),
            None => scope.recipient,
        };
        let address = |text: &String| text.parse().unwrap_or(Address::from_bytes([0; 21]));
        let addresses = parameters.texts("addresses").unwrap_or_default().iter().map(address).collect();
        let owner = parameters.text("ownerId").map(|owner| address(&owner.to_owned()));
        let core_types_only = parameters.get("type").is_some() && parameters.get("typeGroup").is_none();
        Some(Self { call, scope, senders, recipient, addresses, owner, core_types_only })
    }

    fn run(&self) -> Listing<TransactionRow> {
        if let Some(listing) = self.newest_of_all() {
            return listing;
        }
        let mut rows: Vec<TransactionRow> = self.candidates().into_iter().map(TransactionRow::confirmed).collect();
        rows.retain(|row| self.accepts(row));
        // Among equals the last in its block is first, but in the list of one block the first is.
        if self.scope.block.is_some() {
            rows.sort_by_key(TransactionRow::sequence);
        } else {
            rows.sort_by_key(|row| Reverse(row.sequence()));
        }
        let order = self.call.parameters.order().unwrap_or(("timestamp", true));
        self.call.page().cut(field::sort(transaction::FIELDS, order, rows, &self.call.frame()))
    }

    /// All transactions, newest first: found by their numbers.
    fn newest_of_all(&self) -> Option<Listing<TransactionRow>> {
        let call = self.call;
        let is_narrowed = self.scope.block.is_some()
            || self.scope.party.is_some()
            || self.scope.kind.is_some()
            || self.recipient.is_some()
            || self.owner.is_some()
            || !self.addresses.is_empty()
            || !self.senders.is_empty()
            || field::filters(transaction::FIELDS, &call.parameters, call.frame().dialect);
        let is_default = matches!(call.parameters.order(), None | Some(("timestamp", true)));
        if is_narrowed || !is_default || !call.context.view.chain_order_is_time_order() {
            return None;
        }
        let total = call.head.tip().transactions();
        let range = call.page().range(total);
        let rows = match range.is_empty() {
            true => Vec::new(),
            false => call.head.transactions_down(total - 1 - range.start, (range.end - range.start) as usize),
        };
        Some(Listing {
            rows: rows.into_iter().map(TransactionRow::confirmed).collect(),
            total,
            estimate: Estimate::WhenFullOrEmpty,
        })
    }

    /// The transactions among which all that are searched for are.
    fn candidates(&self) -> Vec<Place> {
        let (call, view, head) = (self.call, &self.call.context.view, &self.call.head);
        if let Some(id) = call.parameters.text("id") {
            let id = id.parse().ok();
            return id.and_then(|id: TransactionId| view.place(head, &id)).into_iter().collect();
        }
        if let Some(block) = &self.scope.block {
            return places(block).collect();
        }
        if let Some(id) = call.parameters.text("blockId") {
            return blocks::find_by_id(call, id).iter().flat_map(places).collect();
        }
        let sender = self.senders.first().map(|key| call.frame().address(key));
        match self.scope.party.or(sender).or(self.recipient).or(self.owner) {
            Some(address) => view.history(head, &address),
            None if !self.addresses.is_empty() => self.of_addresses(),
            None => head.blocks_down().flat_map(places).collect(),
        }
    }

    /// What any of the wallets looked for took part in.
    fn of_addresses(&self) -> Vec<Place> {
        let view = &self.call.context.view;
        let mut places: Vec<Place> =
            self.addresses.iter().flat_map(|address| view.history(&self.call.head, address)).collect();
        places.sort_by_key(|place| (place.link.height(), place.index));
        places.dedup_by_key(|place| (place.link.height(), place.index));
        places
    }

    fn accepts(&self, row: &TransactionRow) -> bool {
        let transaction = &row.transaction;
        let in_scope = match (&self.scope.block, &row.place) {
            (Some(block), Some(place)) => block.id() == place.link.id(),
            _ => true,
        };
        in_scope
            && self.scope.kind.is_none_or(|kind| transaction.kind() == kind)
            && (!self.core_types_only || transaction.kind().numbers().0 == 1)
            && self.senders.iter().all(|key| transaction.sender() == key)
            && self.scope.party.is_none_or(|address| is_party(row, &address))
            && self.recipient.is_none_or(|address| self.is_received_by(row, &address))
            && self.owner.is_none_or(|address| is_party(row, &address))
            && (self.addresses.is_empty() || self.is_of_addresses(row))
            && field::matches(transaction::FIELDS, &self.call.parameters, row, &self.call.frame())
    }

    /// Beside a recipient only the sender can still be one of them, beside a sender only the recipient.
    fn is_of_addresses(&self, row: &TransactionRow) -> bool {
        let is_sender = || self.addresses.contains(&row.transaction.sender_address());
        let is_recipient = || row.stored_recipient().is_some_and(|address| self.addresses.contains(&address));
        match (self.recipient.is_some(), self.senders.is_empty()) {
            (true, _) => is_sender(),
            (false, false) => is_recipient(),
            (false, true) => is_sender() || is_recipient(),
        }
    }

    fn is_received_by(&self, row: &TransactionRow, address: &Address) -> bool {
        match row.stored_recipient() {
            Some(recipient) if recipient == *address => true,
            // Beside a sender only the stored recipient counts.
            _ if !self.senders.is_empty() => false,
            None if row.transaction.sender_address() == *address => true,
            _ => is_payee(row, address),
        }
    }
}

fn is_party(row: &TransactionRow, address: &Address) -> bool {
    row.transaction.sender_address() == *address || row.stored_recipient() == Some(*address) || is_payee(row, address)
}

fn is_payee(row: &TransactionRow, address: &Address) -> bool {
    match row.transaction.asset() {
        Asset::MultiPayment { payments } => payments.iter().any(|payment| payment.recipient == *address),
        _ => false,
    }
}

fn places(link: &Arc<Link>) -> impl Iterator<Item = Place> + use<> {
    let link = link.clone();
    (0..link.block().transactions.len()).map(move |index| Place { link: link.clone(), index })
}
