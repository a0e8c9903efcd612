//! Searching the confirmed transactions of a head. Source: api.md 3, 4.2.
//!
//! ```text
//!   candidates ──► numbers and types, beside each other ──► the whole transaction, ──► order and page, by
//!   from an index  for all of a block (`Facts`)             if something else is asked  number and spot
//! ```
//!
//! Only the rows of the page are made. What an index answers alone is not even looked at: its length is the total.

use crate::{
    api::{
        handler::blocks,
        resource::transaction::{self, TransactionRow},
        table::{
            dialect::Dialect,
            field,
            like::Pattern,
            page::{Estimate, Listing, Page},
            route::Call,
            rule::Given,
        },
        view::{Chain, Entry, Facts, Place, Spot},
    },
    protocol::{Address, Asset, Height, PublicKey, TransactionId, transaction::Kind},
};
use imbl::Vector;
use memchr::memmem::Finder;
use std::{cmp::Ordering, ops::Range, sync::Arc};

/// The filters that a list's path sets, beside those of its query.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub block: Option<Arc<Entry>>,
    pub sender: Option<PublicKey>,
    pub recipient: Option<Address>,
    /// In any role.
    pub party: Option<Address>,
    pub kind: Option<Kind>,
}

/// A search for confirmed transactions.
pub struct Search<'s> {
    call: &'s Call<'s>,
    scope: Scope,
    /// Both of them must be the sender: what the path says and what the query says.
    senders: Vec<PublicKey>,
    recipient: Option<Address>,
    /// One of them must be its sender or its stored recipient.
    addresses: Vec<Address>,
    /// In any role.
    owner: Option<Address>,
    /// The types of transactions that can match.
    kinds: Kinds,
    /// The numbers that can match.
    numbers: Vec<Numbers>,
}

/// A set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kinds(u32);

/// A number of a transaction and what it must lie in.
struct Numbers {
    of: fn(&Facts) -> u64,
    from: u64,
    to: u64,
}

/// Transactions that are held at least before those behind the page are let go.
const LEAST_ROOM: usize = 64;

/// Transactions among which all that are searched for are, in the order of the chain.
enum Candidates<'s> {
    All(&'s Chain),
    Spots(&'s Vector<Spot>),
    OfKind(&'s Vector<(Spot, u64)>),
    Few(Vec<Spot>),
}

impl Kinds {
    const ALL: Self = Self((1 << Kind::ALL.len()) - 1);

    fn matching(passes: impl Fn(Kind) -> bool) -> Self {
        Self(Kind::ALL.into_iter().filter(|kind| passes(*kind)).fold(0, |set, kind| set | 1 << kind as u32))
    }

    fn contains(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u32 != 0
    }

    /// The only one, if it is one.
    fn single(self) -> Option<Kind> {
        let mut kinds = Kind::ALL.into_iter().filter(|kind| self.contains(*kind));
        kinds.next().filter(|_| kinds.next().is_none())
    }
}

impl Numbers {
    /// Reads a parameter: one number, or a range of them. `None` if it narrows nothing.
    fn asked(of: fn(&Facts) -> u64, given: &Given) -> Option<Self> {
        let (from, to) = match given {
            Given::Integer(number) => (Some(*number), Some(*number)),
            Given::Range { from, to } => (*from, *to),
            _ => return None,
        };
        // Below 0 is nothing: then the range is empty.
        let to = to.map_or((0, u64::MAX), |to| u64::try_from(to).map_or((1, 0), |to| (0, to)));
        let from = from.map_or(0, |from| u64::try_from(from).unwrap_or(0)).max(to.0);
        Some(Self { of, from, to: to.1 })
    }

    fn holds(&self, facts: &Facts) -> bool {
        (self.from..=self.to).contains(&(self.of)(facts))
    }
}

/// The numbers of transactions by name.
fn number(name: &str) -> Option<fn(&Facts) -> u64> {
    Some(match name {
        "amount" => |facts| facts.amount,
        "fee" => |facts| facts.fee,
        "nonce" => |facts| facts.nonce,
        "timestamp" => |facts| u64::from(facts.timestamp.0),
        "type" => |facts| u64::from(facts.kind.numbers().1),
        "typeGroup" => |facts| u64::from(facts.kind.numbers().0),
        "version" => |facts| u64::from(facts.version),
        _ => return None,
    })
}

fn holds(given: &Given, number: u64) -> bool {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    match given {
        Given::Integer(wanted) => *wanted == number,
        Given::Range { from, to } => from.is_none_or(|from| number >= from) && to.is_none_or(|to| number <= to),
        _ => true,
    }
}

impl<'s> Search<'s> {
    /// `None` if a sender is asked for whose key nobody knows.
    pub fn new(call: &'s Call<'s>, scope: Scope) -> Option<Self> {
        let parameters = &call.parameters;
        let mut senders: Vec<PublicKey> = scope.sender.into_iter().collect();
        if let Some(key) = parameters.text("senderPublicKey") {
            senders.push(key.parse().ok()?);
        }
        if let Some(address) = parameters.text("senderId") {
            senders.push(call.frame().find_wallet(address)?.public_key?);
        }
        senders.dedup();
        // Well-formed and nobody's: the wallet of no transaction.
        let address = |text: &str| text.parse().unwrap_or(Address::from_bytes([0; 21]));
        let recipient = parameters.text("recipientId").map(address).or(scope.recipient);
        let addresses = parameters.texts("addresses").unwrap_or_default().iter().map(|text| address(text)).collect();
        let owner = parameters.text("ownerId").map(address);
        let (kind, group) = (parameters.get("type"), parameters.get("typeGroup"));
        // A type without its group is one of group 1.
        let is_core_only = kind.is_some() && group.is_none();
        let asset = match parameters.get("asset") {
            Some(Given::Value(asset)) => asset.as_object().and_then(|asset| asset.keys().next()),
            _ => None,
        };
        let kinds = Kinds::matching(|other| {
            let (in_group, number) = other.numbers();
            kind.is_none_or(|kind| holds(kind, number.into()))
                && group.is_none_or(|group| holds(group, in_group.into()))
                && (!is_core_only || in_group == 1)
                && scope.kind.is_none_or(|kind| kind == other)
                && asset.is_none_or(|name| Kind::asset_members(other).contains(&&**name))
        });
        let numbers = parameters.iter().filter(|(name, _)| !matches!(*name, "type" | "typeGroup"));
        let numbers = numbers.filter_map(|(name, given)| Numbers::asked(number(name)?, given)).collect();
        Some(Self { call, scope, senders, recipient, addresses, owner, kinds, numbers })
    }

    /// The page asked for.
    pub fn run(&self) -> Listing<TransactionRow> {
        let (page, candidates) = (self.call.page(), self.candidates());
        let by_chain = self.is_in_chain_order();
        if by_chain && self.is_answered_by(&candidates) {
            let total = candidates.len();
            let spots = page.range(total).filter_map(|index| candidates.at(total - 1 - index)).collect();
            return self.listing(spots, total);
        }
        let found = self.filter(&candidates);
        let (total, range) = (found.len() as u64, page.range(found.len() as u64));
        let range = range.start as usize..range.end as usize;
        let spots = match self.call.parameters.order().unwrap_or(("timestamp", true)) {
            _ if by_chain => found.iter().rev().skip(range.start).take(range.len()).copied().collect(),
            (name, descending) => match number(name) {
                Some(of) => self.order_by_number(found, of, descending, range),
                None => return self.order_by_field(&found, (name, descending), page),
            },
        };
        self.listing(spots, total)
    }

    fn listing(&self, spots: Vec<Spot>, total: u64) -> Listing<TransactionRow> {
        let chain = self.call.head.chain();
        let places = spots.into_iter().filter_map(|spot| chain.place(spot));
        Listing { rows: places.map(TransactionRow::confirmed).collect(), total, estimate: Estimate::Unsaid }
    }

    /// True if the order asked for is that of the chain, newest first.
    fn is_in_chain_order(&self) -> bool {
        let is_default = matches!(self.call.parameters.order(), None | Some(("timestamp", true)));
        is_default && self.scope.block.is_none() && self.call.head.chain().is_in_time_order()
    }

    fn candidates(&self) -> Candidates<'_> {
        let (call, chain) = (self.call, self.call.head.chain());
        if let Some(id) = call.parameters.text("id") {
            let id = id.parse().ok();
            let place = id.and_then(|id: TransactionId| call.context.view.place(&call.head, &id));
            return Candidates::Few(place.iter().map(spot_of).collect());
        }
        if let Some(block) = &self.scope.block {
            return Candidates::Few(spots_in(block));
        }
        if let Some(id) = call.parameters.text("blockId") {
            return Candidates::Few(blocks::find_by_id(call, id).map(spots_in).unwrap_or_default());
        }
        if let Some(key) = self.senders.first() {
            return Candidates::of(chain.history(&call.frame().address(key)).map(|history| &history.sent));
        }
        if let Some(address) = self.scope.party.as_ref().or(self.owner.as_ref()) {
            return Candidates::of(chain.history(address).map(|history| &history.any));
        }
        if let Some(address) = &self.recipient {
            return Candidates::of(chain.history(address).map(|history| &history.received));
        }
        if !self.addresses.is_empty() {
            let histories = self.addresses.iter().filter_map(|address| chain.history(address));
            let mut spots: Vec<Spot> = histories.flat_map(|history| history.any.iter().copied()).collect();
            spots.sort_unstable();
            spots.dedup();
            return Candidates::Few(spots);
        }
        self.kinds.single().map_or(Candidates::All(chain), |kind| Candidates::OfKind(chain.of_kind(kind)))
    }

    /// True if the candidates are what is searched for.
    fn is_answered_by(&self, candidates: &Candidates<'_>) -> bool {
        let is_of_kind = match candidates {
            Candidates::OfKind(_) => true,
            Candidates::All(_) | Candidates::Spots(_) => self.kinds == Kinds::ALL,
            Candidates::Few(_) => false,
        };
        is_of_kind && self.numbers.is_empty() && !self.has_more_than(candidates)
    }

    /// True if something is asked for that neither the candidates nor numbers and types tell.
    fn has_more_than(&self, candidates: &Candidates<'_>) -> bool {
        let told = match candidates {
            Candidates::Spots(_) => 1,
            Candidates::All(_) | Candidates::OfKind(_) | Candidates::Few(_) => 0,
        };
        let parties = self.senders.len()
            + usize::from(self.scope.party.is_some())
            + usize::from(self.owner.is_some())
            + usize::from(self.recipient.is_some())
            + usize::from(!self.addresses.is_empty());
        let is_text = |name: &str| matches!(name, "id" | "blockId" | "vendorField" | "vendorFieldHex" | "asset");
        parties > told || self.call.parameters.iter().any(|(name, _)| is_text(name))
    }

    /// The candidates that are searched for, in the order of the chain.
    fn filter(&self, candidates: &Candidates<'_>) -> Vec<Spot> {
        let chain = self.call.head.chain();
        let must_look = self.has_more_than(candidates) || self.scope.block.is_some();
        let accepts = |entry: &Arc<Entry>, index: usize| {
            let facts = &entry.facts[index];
            self.kinds.contains(facts.kind)
                && self.numbers.iter().all(|numbers| numbers.holds(facts))
                && (!must_look || self.accepts(&TransactionRow::confirmed(Place { entry: entry.clone(), index })))
        };
        let mut found = Vec::new();
        if let Candidates::All(chain) = candidates {
            // What has a zero byte may begin in one field and end in the next, over what is looked for.
            let has_patterns = self.call.context.settings.dialect == Dialect::Core26;
            let is_plain = |text: &&str| !(text.contains('\0') || has_patterns && Pattern::is_one(text));
            let text = self.call.parameters.text("vendorField").filter(is_plain);
            let text = text.map(|text| Finder::new(text.as_bytes()));
            for entry in chain.blocks() {
                let at = |index: usize| Spot { height: entry.height(), index: index as u32 };
                match &text {
                    Some(text) => {
                        let indexes = entry.with_vendor_field(text).into_iter();
                        found.extend(indexes.filter(|index| accepts(entry, *index)).map(at));
                    }
                    None => found.extend((0..entry.facts.len()).filter(|index| accepts(entry, *index)).map(at)),
                }
            }
            return found;
        }
        // Neighbours are often of one block.
        let mut last: Option<&Arc<Entry>> = None;
        candidates.for_each(|spot| {
            if last.is_none_or(|entry| entry.height() != spot.height) {
                last = chain.at(spot.height);
            }
            if last.is_some_and(|entry| accepts(entry, spot.index as usize)) {
                found.push(spot);
            }
        });
        found
    }

    /// Among equals the last in its block is first, but in the list of one block the first is.
    fn break_tie(&self, one: Spot, other: Spot) -> Ordering {
        let order = (one.index, one.height).cmp(&(other.index, other.height));
        if self.scope.block.is_some() { order } else { order.reverse() }
    }

    /// The rows of a page in the order of a number, without ordering all others.
    fn order_by_number(
        &self,
        found: Vec<Spot>,
        of: fn(&Facts) -> u64,
        descending: bool,
        range: Range<usize>,
    ) -> Vec<Spot> {
        let chain = self.call.head.chain();
        let order =
            |one: &(u64, Spot), other: &(u64, Spot)| one.0.cmp(&other.0).then_with(|| self.break_tie(one.1, other.1));
        // Now and then what lies behind the page is let go, and nothing like it is taken up again.
        let (keep, room) = (range.end, range.end.saturating_mul(4).max(LEAST_ROOM));
        let mut bound = u64::MAX;
        let mut last: Option<&Arc<Entry>> = None;
        let mut keyed: Vec<(u64, Spot)> = Vec::with_capacity(found.len().min(room));
        for spot in found {
            if last.is_none_or(|entry| entry.height() != spot.height) {
                last = chain.at(spot.height);
            }
            // Descending by a number is ascending by what is left above it.
            let number = last.map_or(0, |entry| of(&entry.facts[spot.index as usize]));
            let number = if descending { !number } else { number };
            if number > bound {
                continue;
            }
            keyed.push((number, spot));
            if keyed.len() == room {
                let (_, first_behind, _) = keyed.select_nth_unstable_by(keep, order);
                bound = first_behind.0;
                keyed.truncate(keep);
            }
        }
        let mut page = &mut keyed[..];
        if range.end < page.len() {
            page = page.select_nth_unstable_by(range.end, order).0;
        }
        if range.start > 0 && range.start < page.len() {
            let (_, _, _) = page.select_nth_unstable_by(range.start, order);
        }
        let start = range.start.min(page.len());
        page[start..].sort_unstable_by(order);
        page[start..].iter().map(|(_, spot)| *spot).collect()
    }

    /// The page of the rows in the order of a field that is no number.
    fn order_by_field(&self, found: &[Spot], order: (&'static str, bool), page: Page) -> Listing<TransactionRow> {
        let chain = self.call.head.chain();
        let mut spots = found.to_vec();
        spots.sort_unstable_by(|one, other| self.break_tie(*one, *other));
        let rows = spots.into_iter().filter_map(|spot| chain.place(spot)).map(TransactionRow::confirmed).collect();
        page.cut(field::sort(transaction::FIELDS, order, rows, &self.call.frame()))
    }

    fn accepts(&self, row: &TransactionRow) -> bool {
        let transaction = &row.transaction;
        let in_scope = match (&self.scope.block, &row.place) {
            (Some(block), Some(place)) => block.link().id() == place.link().id(),
            _ => true,
        };
        in_scope
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

impl<'c> Candidates<'c> {
    fn of(spots: Option<&'c Vector<Spot>>) -> Self {
        spots.map_or_else(|| Self::Few(Vec::new()), Self::Spots)
    }

    fn len(&self) -> u64 {
        match self {
            Self::All(chain) => chain.transactions(),
            Self::Spots(spots) => spots.len() as u64,
            Self::OfKind(spots) => spots.len() as u64,
            Self::Few(spots) => spots.len() as u64,
        }
    }

    fn at(&self, index: u64) -> Option<Spot> {
        let place = usize::try_from(index).ok()?;
        match self {
            Self::All(chain) => chain.transaction(index).as_ref().map(spot_of),
            Self::Spots(spots) => spots.get(place).copied(),
            Self::OfKind(spots) => spots.get(place).map(|(spot, _)| *spot),
            Self::Few(spots) => spots.get(place).copied(),
        }
    }

    fn for_each(&self, mut act: impl FnMut(Spot)) {
        match self {
            Self::All(chain) => chain.blocks().iter().flat_map(spots_in).for_each(act),
            Self::Spots(spots) => spots.iter().for_each(|spot| act(*spot)),
            Self::OfKind(spots) => spots.iter().for_each(|(spot, _)| act(*spot)),
            Self::Few(spots) => spots.iter().for_each(|spot| act(*spot)),
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

fn spot_of(place: &Place) -> Spot {
    Spot { height: place.entry.height(), index: place.index as u32 }
}

fn spots_in(entry: &Arc<Entry>) -> Vec<Spot> {
    let height: Height = entry.height();
    (0..entry.facts.len() as u32).map(|index| Spot { height, index }).collect()
}
