//! The table of routes: who answers what, and what may be asked. Source: api.md 4.

use super::{
    ApiError, Reply,
    context::{Dialect, Spoken},
    handler::{
        Call, blocks, businesses, delegates, fees, lab, locks, node, peers, submit, transactions, types, votes,
        wallets, webhooks,
    },
    log::LINES_MAX,
    parameter::{PAGING, Parameter, TRANSFORM, both, documented},
    resource::{block, business, delegate, lock, peer, transaction, wallet, webhook},
    rule::{Bound, Rule},
};
use std::pin::Pin;
use warp::http::Method;

/// One route.
pub struct Route {
    pub verb: Verb,
    /// Segments in braces are arguments.
    pub path: &'static str,
    /// What the arguments may be; all of the path's are listed.
    pub arguments: &'static [Parameter],
    pub query: Query,
    /// What the body's members may be, for routes that are asked by one.
    pub body: Option<&'static [&'static [Parameter]]>,
    pub spoken: Spoken,
    pub handle: Handle,
    /// Who is answered.
    pub access: Access,
    /// Whether the answer says since when it is this one: it changes with the chain only.
    pub is_dated: bool,
}

/// What a route is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

/// Whom a route answers, of those whom the API answers at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Everyone,
    /// This machine only.
    Loopback,
    /// Who may make the node call others.
    Webhooks,
}

impl Verb {
    /// The verb of a method; HEAD asks as GET does, and no route knows the others.
    pub fn of(method: &Method) -> Option<Self> {
        match *method {
            Method::GET | Method::HEAD => Some(Self::Get),
            Method::POST => Some(Self::Post),
            Method::PUT => Some(Self::Put),
            Method::DELETE => Some(Self::Delete),
            _ => None,
        }
    }
}

/// What a route makes of the query.
#[derive(Clone, Copy)]
pub enum Query {
    Ignored,
    /// These are checked, all others ignored.
    Known(&'static [&'static [Parameter]]),
    /// These are checked, all others refused.
    Only(&'static [&'static [Parameter]]),
}

/// Who answers.
#[derive(Clone, Copy)]
pub enum Handle {
    /// From one head, at once.
    Now(fn(&Call<'_>) -> Result<Reply, ApiError>),
    /// After the simulation has done something.
    Later(for<'c> fn(Call<'c>) -> Answer<'c>),
}

/// An answer that waits for the simulation.
pub type Answer<'c> = Pin<Box<dyn Future<Output = Result<Reply, ApiError>> + Send + 'c>>;

/// A route that a path leads to, with the texts of its arguments, still encoded.
pub struct Match<'p> {
    pub route: &'static Route,
    pub arguments: Vec<(&'static str, &'p str)>,
}

impl Route {
    const fn get(path: &'static str, query: Query, handle: fn(&Call<'_>) -> Result<Reply, ApiError>) -> Self {
        Self::new(Verb::Get, path, query, Handle::Now(handle))
    }

    const fn later(verb: Verb, path: &'static str, query: Query, handle: for<'c> fn(Call<'c>) -> Answer<'c>) -> Self {
        Self::new(verb, path, query, Handle::Later(handle))
    }

    /// A search: what is looked for stands in the body.
    const fn search(
        path: &'static str,
        query: Query,
        body: &'static [&'static [Parameter]],
        handle: fn(&Call<'_>) -> Result<Reply, ApiError>,
    ) -> Self {
        Self::new(Verb::Post, path, query, Handle::Now(handle)).with_body(body)
    }

    const fn new(verb: Verb, path: &'static str, query: Query, handle: Handle) -> Self {
        let spoken = Spoken::Always;
        let access = Access::Everyone;
        Self { verb, path, arguments: &[], query, body: None, spoken, handle, access, is_dated: false }
    }

    const fn with_body(self, body: &'static [&'static [Parameter]]) -> Self {
        Self { body: Some(body), ..self }
    }

    const fn spoken(self, spoken: Spoken) -> Self {
        Self { spoken, ..self }
    }

    const fn of(self, arguments: &'static [Parameter]) -> Self {
        Self { arguments, ..self }
    }

    const fn on_loopback(self) -> Self {
        Self { access: Access::Loopback, ..self }
    }

    const fn for_webhooks(self) -> Self {
        Self { access: Access::Webhooks, ..self }
    }

    const fn dated(self) -> Self {
        Self { is_dated: true, ..self }
    }

    /// Whether links of the route say `transform`.
    pub fn has_transform(&self) -> bool {
        match self.query {
            Query::Only(tables) => {
                tables.iter().any(|table| table.iter().any(|parameter| parameter.name == "transform"))
            }
            Query::Ignored | Query::Known(_) => false,
        }
    }
}

/// The route of a verb and a path in a dialect, if there is one. Routes without arguments stand before those with.
pub fn find(verb: Verb, path: &str, dialect: Dialect) -> Option<Match<'_>> {
    let mut arguments = Vec::new();
    for route in ROUTES.iter().filter(|route| route.verb == verb && route.spoken.holds(dialect)) {
        arguments.clear();
        if leads_to(route, path, &mut arguments) {
            return Some(Match { route, arguments });
        }
    }
    None
}

fn leads_to<'p>(route: &'static Route, path: &'p str, arguments: &mut Vec<(&'static str, &'p str)>) -> bool {
    let mut found = path.split('/');
    let mut wanted = route.path.split('/');
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(wanted), Some(found)) if wanted == found => {}
            (Some(wanted), Some(found)) if !found.is_empty() => {
                let Some(name) = wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}')) else { return false };
                arguments.push((name, found));
            }
            _ => return false,
        }
    }
}

/// The reference checks the order of unlocked transactions, and ignores it.
const UNLOCKED_ORDER: &[Parameter] = &[both("orderBy", Rule::Order(transaction::ORDERS))];
const ONE: Query = Query::Only(&[TRANSFORM]);
const ROUND: &[Parameter] = &[both("id", Rule::Integer(Bound::Least(1)))];
const DAYS: &[Parameter] = &[both("days", Rule::Integer(Bound::Between(1, 30)))];
const LINES: &[Parameter] = &[both("lines", Rule::Integer(Bound::Between(1, LINES_MAX as i64)))];
const SHOWN_AS_TOLD: Query = Query::Known(&[&[documented("transform", Rule::Boolean)]]);

#[rustfmt::skip]
static ROUTES: &[Route] = &[
    Route::get("/", Query::Ignored, node::hello),
    Route::get("/api/node/status", Query::Ignored, node::status),
    Route::get("/api/node/syncing", Query::Ignored, node::syncing),
    Route::get("/api/node/configuration", Query::Ignored, node::configuration),
    Route::get("/api/node/configuration/crypto", Query::Ignored, node::crypto),
    Route::get("/api/node/debug", Query::Only(&[LINES]), node::debug),
    Route::get("/api/node/fees", Query::Only(&[DAYS]), fees::list).spoken(Spoken::DOCUMENTED),
    Route::get("/api/node/fees", Query::Only(&[DAYS]), fees::by_group).spoken(Spoken::CORE26),
    Route::get("/api/blockchain", Query::Ignored, node::blockchain),
    Route::get("/api/rounds/{id}/delegates", Query::Ignored, delegates::of_round).of(ROUND).dated(),

    Route::get("/api/blocks", Query::Only(&[PAGING, block::FILTERS, TRANSFORM]), blocks::list).dated(),
    Route::get("/api/blocks/first", ONE, blocks::first),
    Route::get("/api/blocks/last", ONE, blocks::last),
    Route::get("/api/blocks/{id}", ONE, blocks::show).of(block::PATH_ID).dated(),
    Route::get("/api/blocks/{id}/transactions", Query::Only(&[PAGING, transaction::OF_BLOCK, TRANSFORM]), transactions::of_block).of(block::PATH_ANY_ID).dated(),
    Route::search("/api/blocks/search", Query::Only(&[PAGING, block::ORDERED, TRANSFORM]), &[block::SEARCH], blocks::list).dated(),

    Route::later(Verb::Post, "/api/transactions", Query::Ignored, submit::submit),
    Route::get("/api/transactions", Query::Only(&[PAGING, transaction::FILTERS, TRANSFORM]), transactions::list).dated(),
    Route::search("/api/transactions/search", Query::Only(&[PAGING, transaction::ORDERED, TRANSFORM]), &[transaction::SEARCH], transactions::list).dated(),
    Route::get("/api/transactions/types", Query::Ignored, types::types),
    Route::get("/api/transactions/fees", Query::Ignored, types::fees),
    Route::get("/api/transactions/schemas", Query::Ignored, types::schemas),
    Route::get("/api/transactions/unconfirmed", Query::Only(&[PAGING, TRANSFORM]), transactions::unconfirmed),
    Route::get("/api/transactions/unconfirmed/{id}", SHOWN_AS_TOLD, transactions::show_unconfirmed).of(transaction::PATH_ID),
    Route::get("/api/transactions/{id}", ONE, transactions::show).of(transaction::PATH_ID).dated(),

    Route::get("/api/votes", Query::Only(&[PAGING, transaction::VOTES, TRANSFORM]), votes::list).dated(),
    Route::get("/api/votes/{id}", ONE, votes::show).of(transaction::PATH_ID).dated(),

    Route::get("/api/wallets", Query::Only(&[PAGING, wallet::FILTERS]), wallets::list).dated(),
    Route::get("/api/wallets/top", Query::Only(&[PAGING, wallet::FILTERS]), wallets::top).dated(),
    Route::get("/api/wallets/{id}", Query::Ignored, wallets::show).of(wallet::PATH_ID).dated(),
    Route::get("/api/wallets/{id}/transactions", Query::Only(&[PAGING, transaction::OF_WALLET, TRANSFORM]), wallets::transactions).of(wallet::PATH_ID).dated(),
    Route::get("/api/wallets/{id}/transactions/sent", Query::Only(&[PAGING, transaction::OF_WALLET, transaction::SENT, TRANSFORM]), wallets::sent).of(wallet::PATH_ID).dated(),
    Route::get("/api/wallets/{id}/transactions/received", Query::Only(&[PAGING, transaction::OF_WALLET, transaction::RECEIVED, TRANSFORM]), wallets::received).of(wallet::PATH_ID).dated(),
    Route::get("/api/wallets/{id}/votes", Query::Only(&[PAGING, TRANSFORM]), wallets::votes).of(wallet::PATH_ID).dated(),

    Route::get("/api/wallets/{id}/locks", Query::Only(&[PAGING, lock::OF_WALLET]), locks::of_wallet).of(wallet::PATH_ID).dated(),
    Route::search("/api/wallets/search", Query::Only(&[PAGING, wallet::ORDERED]), &[wallet::SEARCH], wallets::search_all).dated(),

    Route::get("/api/delegates", Query::Only(&[PAGING, delegate::FILTERS]), delegates::list).dated(),
    Route::get("/api/delegates/{id}", Query::Ignored, delegates::show).of(wallet::PATH_ID).dated(),
    Route::get("/api/delegates/{id}/blocks", Query::Only(&[PAGING, block::OF_DELEGATE, TRANSFORM]), delegates::blocks).of(wallet::PATH_ID).dated(),
    Route::get("/api/delegates/{id}/voters", Query::Only(&[PAGING, wallet::VOTERS, TRANSFORM]), delegates::voters).of(wallet::PATH_ID).dated(),
    Route::search("/api/delegates/search", Query::Only(&[PAGING, delegate::ORDERED]), &[delegate::SEARCH], delegates::list).dated(),

    Route::get("/api/locks", Query::Only(&[PAGING, lock::FILTERS]), locks::list).dated(),
    Route::get("/api/locks/search", Query::Only(&[PAGING, lock::SEARCH]), locks::list).with_body(&[lock::SEARCH]).spoken(Spoken::DOCUMENTED).dated(),
    Route::get("/api/locks/unlocked", Query::Only(&[PAGING, UNLOCKED_ORDER, lock::UNLOCKED]), locks::unlocked).spoken(Spoken::DOCUMENTED).dated(),
    Route::get("/api/locks/{id}", Query::Ignored, locks::show).of(lock::PATH_ID).dated(),
    Route::search("/api/locks/search", Query::Only(&[PAGING, lock::ORDERED]), &[lock::SEARCH], locks::list).dated(),
    Route::search("/api/locks/unlocked", Query::Only(&[PAGING, UNLOCKED_ORDER]), &[lock::UNLOCKED], locks::unlocked).dated(),

    Route::get("/api/businesses", Query::Only(&[PAGING, business::FILTERS, TRANSFORM]), businesses::list).dated(),
    Route::get("/api/businesses/{id}", ONE, businesses::show).of(wallet::PATH_ID).dated(),
    Route::get("/api/business/{id}", ONE, businesses::show).of(wallet::PATH_ID).spoken(Spoken::DOCUMENTED).dated(),
    Route::get("/api/businesses/{id}/bridgechains", Query::Only(&[PAGING, business::CHAINS_OF_BUSINESS]), businesses::chains).of(wallet::PATH_ID).dated(),
    Route::get("/api/businesses/{id}/bridgechains/{genesisHash}", Query::Ignored, businesses::chain).of(business::PATH_CHAIN).dated(),
    Route::search("/api/businesses/search", Query::Only(&[PAGING, business::ORDERED]), &[business::SEARCH], businesses::list).dated(),
    Route::get("/api/bridgechains", Query::Only(&[PAGING, business::CHAIN_FILTERS]), businesses::all_chains).dated(),
    Route::search("/api/bridgechains/search", Query::Only(&[PAGING, business::CHAINS_ORDERED]), &[business::CHAIN_SEARCH], businesses::all_chains).dated(),

    Route::get("/api/peers", Query::Only(&[PAGING, peer::FILTERS]), peers::list),
    Route::get("/api/peers/{ip}", Query::Ignored, peers::show).of(peer::PATH_IP),

    Route::later(Verb::Get, "/api/webhooks", Query::Only(&[PAGING]), webhooks::list).for_webhooks().spoken(Spoken::DOCUMENTED),
    Route::later(Verb::Get, "/api/webhooks", Query::Ignored, webhooks::list_all).for_webhooks().spoken(Spoken::CORE26),
    Route::later(Verb::Post, "/api/webhooks", Query::Ignored, webhooks::create).with_body(&[webhook::NEW]).for_webhooks(),
    Route::later(Verb::Get, "/api/webhooks/{id}", Query::Ignored, webhooks::show).of(webhook::PATH_ID).for_webhooks(),
    Route::later(Verb::Put, "/api/webhooks/{id}", Query::Ignored, webhooks::update).of(webhook::PATH_ID).with_body(&[webhook::CHANGE]).for_webhooks(),
    Route::later(Verb::Delete, "/api/webhooks/{id}", Query::Ignored, webhooks::delete).of(webhook::PATH_ID).for_webhooks(),

    Route::later(Verb::Get, "/lab/webhooks", Query::Ignored, webhooks::counts).on_loopback(),
    Route::later(Verb::Post, "/lab/advance", Query::Ignored, lab::advance).on_loopback(),
    Route::later(Verb::Post, "/lab/pace", Query::Ignored, lab::set_pace).on_loopback(),
    Route::later(Verb::Get, "/lab/pace", Query::Ignored, lab::pace).on_loopback(),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn path(verb: Verb, path: &str) -> Option<(&'static str, Vec<String>)> {
        let found = find(verb, path, Dialect::Documented)?;
        Some((found.route.path, found.arguments.into_iter().map(|(_, text)| text.to_owned()).collect()))
    }

    #[test]
    fn plain_segments_win_over_arguments() {
        assert_eq!(path(Verb::Get, "/api/blocks/last"), Some(("/api/blocks/last", vec![])));
        let one = Some(("/api/blocks/{id}", vec!["7".to_owned()]));
        assert_eq!(path(Verb::Get, "/api/blocks/7"), one);
        for nowhere in ["", "/api", "/api/", "/api/blocks/", "/api/blocks//transactions", "/API/blocks", "//"] {
            assert_eq!(path(Verb::Get, nowhere), None, "{nowhere}");
        }
        assert_eq!(path(Verb::Post, "/api/blocks"), None);
    }

    #[test]
    fn every_argument_of_a_path_has_a_rule() {
        for route in ROUTES {
            let arguments = route.path.split('/').filter_map(|segment| segment.strip_prefix('{'));
            let names: Vec<&str> = arguments.map(|segment| segment.trim_end_matches('}')).collect();
            let ruled: Vec<&str> = route.arguments.iter().map(|parameter| parameter.name).collect();
            assert_eq!(names, ruled, "{}", route.path);
        }
    }
}
