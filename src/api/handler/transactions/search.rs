//! Searching the confirmed transactions of a head. Source: api.md 3, 4.2.
//!
//! ```text
//!   candidates ──► numbers and types, beside each other ──► the whole transaction, ──► order and page, by
//!   from an index  for all of a block (`Facts`)             if something else is asked  number and spot
//! ```
//!
//! Only the rows of the page are made, and only the rows up to its end are kept. A search that one index answers visits no row: the
//! index's length is the total. All other searches visit their candidates newest first.

use crate::{
    api::{
        handler::blocks,
        resource::transaction::{self, TransactionRow},
        table::{
            Call, Dialect, Estimate, Listing, ParameterValue,
            like_pattern::Pattern,
            page::Page,
            select,
            smallest_keys::{self, SmallestKeys},
        },
        view::{Block, Chain, ChainList, ConfirmedTransaction, Entry, Facts, List, Spot, VisitedTransaction},
    },
    protocol::{Address, Asset, PublicKey, TransactionId, transaction::Kind},
};
use memchr::memmem::Finder;
use std::{
    ops::{ControlFlow, Range},
    sync::Arc,
};

/// The filters that a list's path sets, beside those of its query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub block: Option<Arc<Entry>>,
    pub sender: Option<PublicKey>,
    pub recipient: Option<Address>,
    /// In any role.
    pub party: Option<Address>,
    pub kind: Option<Kind>,
}

/// A search for confirmed transactions.
pub(crate) struct Search<'s> {
    call: &'s Call<'s>,
    scope: Scope,
    /// The keys that the path and the query name. Every one of them must be the sender.
    senders: Vec<PublicKey>,
    recipient: Option<Address>,
    /// One of them must be its sender or its stored recipient.
    addresses: Vec<Address>,
    /// In any role.
    owner: Option<Address>,
    /// The types of transactions that can match.
    kinds: Kinds,
    /// The ranges that the numbers of a transaction must lie in.
    numbers: Vec<Numbers>,
}

/// A set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kinds(u32);

/// A number of a transaction and the range that must contain it.
struct Numbers {
    of: fn(&Facts) -> u64,
    from: u64,
    to: u64,
}

/// The number of rows that a merge reads from each of its lists at a time.
const READ_AT_ONCE: u64 = 256;

/// A superset of the matching transactions.
enum Candidates<'s> {
    All,
    Of(ChainList<'s>),
    OfKind(ChainList<'s>),
    /// In the order of the chain.
    Few(Vec<Spot>),
    /// In any of these lists.
    OfAny(Vec<ChainList<'s>>),
}

impl Kinds {
    const ALL: Self = Self((1 << Kind::ALL.len()) - 1);

    fn matching(passes: impl Fn(Kind) -> bool) -> Self {
        Self(Kind::ALL.into_iter().filter(|kind| passes(*kind)).fold(0, |set, kind| set | 1 << kind as u32))
    }

    fn contains(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u32 != 0
    }

    /// The only type of the set. `None` if it has none or several.
    fn single(self) -> Option<Kind> {
        let mut kinds = Kind::ALL.into_iter().filter(|kind| self.contains(*kind));
        kinds.next().filter(|_| kinds.next().is_none())
    }
}

impl Numbers {
    /// Reads a parameter: one number, or a range of them. `None` if it narrows nothing.
    fn asked(of: fn(&Facts) -> u64, given: &ParameterValue) -> Option<Self> {
        let (from, to) = given.ends()?;
        // No number is below 0, so an end below 0 makes the range empty.
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

fn holds(given: &ParameterValue, number: u64) -> bool {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let (from, to) = given.ends().unwrap_or_default();
    from.is_none_or(|from| number >= from) && to.is_none_or(|to| number <= to)
}

impl<'s> Search<'s> {
    /// `None` if the request names a sender whose key is unknown.
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
        // A text that is no address becomes the zero address, which no transaction has.
        let address = |text: &str| text.parse().unwrap_or(Address::from_bytes([0; 21]));
        let recipient = parameters.text("recipientId").map(address).or(scope.recipient);
        let addresses = parameters.texts("addresses").unwrap_or_default().iter().map(|text| address(text)).collect();
        let owner = parameters.text("ownerId").map(address);
        let (kind, group) = (parameters.get("type"), parameters.get("typeGroup"));
        // A type without its group is one of group 1.
        let is_core_only = kind.is_some() && group.is_none();
        let asset = match parameters.get("asset") {
            Some(ParameterValue::Value(asset)) => asset.as_object().and_then(|asset| asset.keys().next()),
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

    /// Runs the search and returns the requested page.
    pub fn run(&self) -> Listing<TransactionRow> {
        let (page, candidates) = (self.call.page(), self.candidates());
        let by_chain = self.is_in_chain_order();
        if by_chain && self.is_answered_by(&candidates) {
            let total = candidates.len(self.call.head.chain());
            let range = page.range(total);
            let spots = candidates.spots_down(self.call.head.chain(), total - range.end..total - range.start);
            return self.listing(spots, total);
        }
        match self.call.parameters.order().unwrap_or(("timestamp", true)) {
            _ if by_chain => self.in_chain_order(&candidates, page),
            (name, descending) => match number(name) {
                Some(of) => self.order_by_number(&candidates, of, descending, page),
                None => self.order_by_field(&candidates, (name, descending), page),
            },
        }
    }

    fn listing(&self, spots: Vec<Spot>, total: u64) -> Listing<TransactionRow> {
        let chain = self.call.head.chain();
        let places = chain.places(&spots).into_iter();
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
            return Candidates::Few(place.iter().map(ConfirmedTransaction::spot).collect());
        }
        if let Some(block) = &self.scope.block {
            return Candidates::Few(spots_in(block));
        }
        if let Some(id) = call.parameters.text("blockId") {
            let block = blocks::find_by_id(call, id).and_then(|block| chain.at(block.height()));
            return Candidates::Few(block.as_ref().map(spots_in).unwrap_or_default());
        }
        if let Some(key) = self.senders.first() {
            return Candidates::Of(chain.listed(List::Sent(call.frame().address(key))));
        }
        if let Some(address) = self.scope.party.as_ref().or(self.owner.as_ref()) {
            return Candidates::Of(chain.listed(List::Any(*address)));
        }
        if let Some(address) = &self.recipient {
            return Candidates::Of(chain.listed(List::Received(*address)));
        }
        if !self.addresses.is_empty() {
            let mut addresses = self.addresses.clone();
            addresses.sort_unstable();
            addresses.dedup();
            return Candidates::OfAny(addresses.into_iter().map(|address| chain.listed(List::Any(address))).collect());
        }
        self.kinds.single().map_or(Candidates::All, |kind| Candidates::OfKind(chain.listed(List::Of(kind))))
    }

    /// True if the candidates are exactly the matches, so that no row needs a visit.
    fn is_answered_by(&self, candidates: &Candidates<'_>) -> bool {
        let is_of_kind = match candidates {
            Candidates::OfKind(_) => true,
            Candidates::All | Candidates::Of(_) => self.kinds == Kinds::ALL,
            Candidates::Few(_) | Candidates::OfAny(_) => false,
        };
        is_of_kind && self.numbers.is_empty() && !self.has_more_than(candidates)
    }

    /// True if a filter remains that neither the candidates nor numbers and types decide.
    fn has_more_than(&self, candidates: &Candidates<'_>) -> bool {
        let told = match candidates {
            Candidates::Of(_) => 1,
            Candidates::All | Candidates::OfKind(_) | Candidates::Few(_) | Candidates::OfAny(_) => 0,
        };
        let parties = self.senders.len()
            + usize::from(self.scope.party.is_some())
            + usize::from(self.owner.is_some())
            + usize::from(self.recipient.is_some())
            + usize::from(!self.addresses.is_empty());
        let is_text = |name: &str| matches!(name, "id" | "blockId" | "vendorField" | "vendorFieldHex" | "asset");
        parties > told || self.call.parameters.iter().any(|(name, _)| is_text(name))
    }

    /// True if a transaction passes the filters of type and numbers.
    fn may_match(&self, facts: &Facts) -> bool {
        self.kinds.contains(facts.kind) && self.numbers.iter().all(|numbers| numbers.holds(facts))
    }

    /// Visits the candidates that match, newest first.
    fn each_found(&self, candidates: &Candidates<'_>, mut visit: impl FnMut(&VisitedTransaction<'_>)) {
        let chain = self.call.head.chain();
        let must_look = self.has_more_than(candidates) || self.scope.block.is_some();
        let mut consider = |seen: &VisitedTransaction<'_>| {
            let passes = self.may_match(seen.facts)
                && (!must_look
                    || seen.place(chain).is_some_and(|place| self.accepts(&TransactionRow::confirmed(place))));
            if passes {
                visit(seen);
            }
        };
        if !matches!(candidates, Candidates::All) {
            return candidates.down(chain, consider);
        }
        // A text with a zero byte may begin in one field and end in the next.
        let has_patterns = self.call.context.settings.dialect == Dialect::Core26;
        let is_plain = |text: &&str| !(text.contains('\0') || has_patterns && Pattern::is_one(text));
        let text = self.call.parameters.text("vendorField").filter(is_plain);
        let text = text.map(|text| Finder::new(text.as_bytes()));
        chain.blocks_down(|block| {
            match &text {
                Some(text) => {
                    let indexes = block.contents().with_vendor_field(text).into_iter();
                    indexes.rev().for_each(|index| consider(&block.seen(index)));
                }
                None => {
                    let facts = block.contents().facts.iter();
                    // If several of its transactions need a look, the block is read once as a whole.
                    let whole = match must_look && facts.filter(|facts| self.may_match(facts)).nth(1).is_some() {
                        true => block.entry(chain),
                        false => None,
                    };
                    let whole = whole.as_ref().map(Block::Recent);
                    let block = whole.as_ref().unwrap_or(block);
                    (0..block.contents().facts.len()).rev().for_each(|index| consider(&block.seen(index)));
                }
            }
            ControlFlow::Continue(())
        });
    }

    /// The page of the matches in the order of the chain, newest first.
    fn in_chain_order(&self, candidates: &Candidates<'_>, page: Page) -> Listing<TransactionRow> {
        let (mut total, mut spots) = (0, Vec::new());
        self.each_found(candidates, |seen| {
            if total >= page.start && spots.len() < page.limit {
                spots.push(seen.spot);
            }
            total += 1;
        });
        self.listing(spots, total)
    }

    /// The sort key among equal rows: the position in the block, then the height, both descending. In the list of one block both
    /// ascend.
    fn turn(&self, spot: Spot) -> u64 {
        let turn = u64::from(spot.index) << 32 | u64::from(spot.height.0);
        if self.scope.block.is_some() { turn } else { !turn }
    }

    /// The page in the order of a number. Sorts only the rows up to its end.
    fn order_by_number(
        &self,
        candidates: &Candidates<'_>,
        of: fn(&Facts) -> u64,
        descending: bool,
        page: Page,
    ) -> Listing<TransactionRow> {
        let mut least = SmallestKeys::new(page.end());
        self.each_found(candidates, |seen| {
            // The complement of a number reverses the order.
            let number = if descending { !of(seen.facts) } else { of(seen.facts) };
            least.push((number, self.turn(seen.spot), seen.spot));
        });
        let total = least.pushed();
        let spots = least.range(page.range(total)).into_iter().map(|(_, _, spot)| spot);
        self.listing(spots.collect(), total)
    }

    /// The page in the order of a field that is no number.
    fn order_by_field(
        &self,
        candidates: &Candidates<'_>,
        order: (&'static str, bool),
        page: Page,
    ) -> Listing<TransactionRow> {
        let (chain, frame, keep) = (self.call.head.chain(), self.call.frame(), page.end());
        let cut = |rows: &mut Vec<TransactionRow>| {
            rows.sort_by_cached_key(|row| self.turn(row.spot()));
            *rows = select::sort(transaction::MEMBERS, order, std::mem::take(rows), &frame);
            rows.truncate(keep);
        };
        let (mut total, mut rows) = (0, Vec::new());
        self.each_found(candidates, |seen| {
            total += 1;
            rows.extend(seen.place(chain).map(TransactionRow::confirmed));
            // Drops the rows behind the page each time the buffer is full.
            if rows.len() == smallest_keys::room(keep) {
                cut(&mut rows);
            }
        });
        cut(&mut rows);
        let start = page.range(total).start as usize;
        Listing { rows: rows.into_iter().skip(start).take(page.limit).collect(), total, estimate: Estimate::Unsaid }
    }

    fn accepts(&self, row: &TransactionRow) -> bool {
        let transaction = &row.transaction;
        let in_scope = match (&self.scope.block, &row.place) {
            (Some(block), Some(place)) => block.link().id() == place.block_id(),
            _ => true,
        };
        in_scope
            && self.senders.iter().all(|key| transaction.sender() == key)
            && self.scope.party.is_none_or(|address| is_party(row, &address))
            && self.recipient.is_none_or(|address| self.is_received_by(row, &address))
            && self.owner.is_none_or(|address| is_party(row, &address))
            && (self.addresses.is_empty() || self.is_of_addresses(row))
            && select::matches(transaction::MEMBERS, &self.call.parameters, row, &self.call.frame())
    }

    /// True if the row passes the filter `addresses`. With a recipient filter only the sender counts, with a sender filter only the
    /// stored recipient.
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

impl Candidates<'_> {
    fn len(&self, chain: &Chain) -> u64 {
        match self {
            Self::All => chain.transactions(),
            Self::Of(list) | Self::OfKind(list) => list.len(),
            Self::Few(spots) => spots.len() as u64,
            Self::OfAny(lists) => lists.iter().map(ChainList::len).sum(),
        }
    }

    /// Returns the spots at some positions of the single list, the last first.
    fn spots_down(&self, chain: &Chain, positions: Range<u64>) -> Vec<Spot> {
        match self {
            Self::All => chain.numbered_down(positions),
            Self::Of(list) | Self::OfKind(list) => list.spots_down(positions),
            Self::Few(_) | Self::OfAny(_) => Vec::new(),
        }
    }

    /// Visits each candidate once, newest first. Visits nothing of `All`, whose blocks the caller walks.
    fn down(&self, chain: &Chain, mut visit: impl FnMut(&VisitedTransaction<'_>)) {
        let mut at = |spot: Spot| chain.look_at(spot.height, |block| visit(&block.seen(spot.index as usize)));
        match self {
            Self::All => {}
            Self::Of(list) | Self::OfKind(list) => list.down(|seen| {
                visit(seen);
                ControlFlow::Continue(())
            }),
            Self::Few(spots) => spots.iter().rev().for_each(|spot| {
                at(*spot);
            }),
            Self::OfAny(lists) => ListMerge::of(lists).for_each(|spot| {
                at(spot);
            }),
        }
    }
}

/// A merge of several lists: each spot once, newest first.
struct ListMerge<'l> {
    /// Each list with the position above which all has been read, and with the spots that were read and not yet returned, the
    /// newest last.
    lists: Vec<(&'l ChainList<'l>, u64, Vec<Spot>)>,
}

impl<'l> ListMerge<'l> {
    fn of(lists: &'l [ChainList<'l>]) -> Self {
        Self { lists: lists.iter().map(|list| (list, list.len(), Vec::new())).collect() }
    }
}

impl Iterator for ListMerge<'_> {
    type Item = Spot;

    fn next(&mut self) -> Option<Spot> {
        for (list, position, read) in &mut self.lists {
            if read.is_empty() && *position > 0 {
                let from = position.saturating_sub(READ_AT_ONCE);
                *read = list.spots_down(from..*position);
                read.reverse();
                *position = from;
            }
        }
        let newest = self.lists.iter().filter_map(|(_, _, read)| read.last().copied()).max()?;
        for (_, _, read) in &mut self.lists {
            read.pop_if(|spot| *spot == newest);
        }
        Some(newest)
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

fn spots_in(entry: &Arc<Entry>) -> Vec<Spot> {
    let height = entry.height();
    (0..entry.contents.facts.len() as u32).map(|index| Spot { height, index }).collect()
}
