//! The table of routes: each with its handler, its parameters and the shape of its answer. Source: api.md 4.

use super::{
    blocks, businesses, chains, chaos, delegates, docs, faults, fees, forks, home, interventions,
    lab::{self, goal, money},
    locks, metrics, node, peers, public, recording, reorg, snapshots, submissions, submit, transactions, types, views,
    votes, wallets, watch, webhooks,
};
use crate::api::{
    http::{guard::Access, log::LINES_MAX},
    resource::{attributes, block, business, delegate, fault, lock, peer, transaction, wallet, webhook},
    table::{
        Bound, Dialect, DialectSet, Parameter, Rule, Shape, both,
        parameter::{BY_FILE, BY_NUMBER, BY_TEXT, PAGING, TRANSFORM, documented},
        route::{AnswerShape, Handle, Match, Query, Route, Verb},
    },
};
use std::sync::LazyLock;

/// The route of a verb and a path in a dialect, if there is one. Routes without arguments stand before those with.
pub(crate) fn find(verb: Verb, path: &str, dialect: Dialect) -> Option<Match<'_>> {
    let mut arguments = Vec::new();
    for route in ROUTES.iter().filter(|route| route.verb == verb && route.spoken.holds(dialect)) {
        if route.arguments.is_empty() {
            if route.path == path {
                return Some(Match { route, arguments });
            }
            continue;
        }
        arguments.clear();
        if route.leads_to(path, &mut arguments) {
            return Some(Match { route, arguments });
        }
    }
    None
}

/// True if only some clients may use a path, with any verb: `/lab` and the webhooks.
pub(crate) fn is_guarded(path: &str) -> bool {
    /// The guarded routes that are not below `/lab`. Every request is compared with them.
    static OTHERS: LazyLock<Vec<&'static Route>> = LazyLock::new(|| {
        ROUTES.iter().filter(|route| route.access != Access::Everyone && !is_of_lab(route.path)).collect()
    });
    let path = path.trim_end_matches('/');
    is_of_lab(path) || OTHERS.iter().any(|route| route.leads_to(path, &mut Vec::new()))
}

fn is_of_lab(path: &str) -> bool {
    path == "/lab" || path.starts_with("/lab/")
}

/// The reference checks the order of unlocked transactions, and ignores it.
const UNLOCKED_ORDER: &[Parameter] = transaction::ORDERED;
const ONE: Query = Query::Only(&[TRANSFORM]);
const ROUND: &[Parameter] = &[both("id", Rule::Integer(Bound::Least(1)))];
const DAYS: &[Parameter] = &[both("days", Rule::Integer(Bound::Between(1, 30)))];
const LINES: &[Parameter] = &[both("lines", Rule::Integer(Bound::Between(1, LINES_MAX as i64)))];
const SHOWN_AS_TOLD: Query = Query::Known(&[&[documented("transform", Rule::Boolean)]]);

/// All routes; those without arguments stand before those with.
#[rustfmt::skip]
pub(crate) static ROUTES: &[Route] = &[
    Route::get("/", Query::Ignored, node::hello).shows("A greeting; to browsers, a page that says where everything is.", AnswerShape::Data(Shape::Text)),
    Route::get("/api/node/status", Query::Ignored, node::status).shows("Whether the node keeps up, and how far it is.", AnswerShape::Data(Shape::Table(&node::STATUS))),
    Route::get("/api/node/syncing", Query::Ignored, node::syncing).shows("The same, with the id of the newest block.", AnswerShape::Data(Shape::Table(&node::SYNCING))),
    Route::get("/api/node/configuration", Query::Ignored, node::configuration).shows("The network, the constants in force, and the pool.", AnswerShape::Data(node::CONFIGURATION_SHAPE)),
    Route::get("/api/node/configuration/crypto", Query::Ignored, node::crypto).shows("The data by which clients sign: exceptions, genesis block, milestones and network.", AnswerShape::Data(Shape::Table(&node::CRYPTO))).of_chain(),
    Route::get("/api/node/debug", Query::Only(&[LINES]), node::debug).shows("The end of the log.", AnswerShape::Text).or_missing(),
    Route::get("/api/node/fees", Query::Only(&[DAYS]), fees::list).shows("The fees that were paid for each type of transactions in the last days.", AnswerShape::Whole(fees::LIST_SHAPE)).spoken(DialectSet::DOCUMENTED),
    Route::get("/api/node/fees", Query::Only(&[DAYS]), fees::by_group).shows("The fees that were paid for each type of transactions in the last days.", AnswerShape::Whole(fees::GROUPS_SHAPE)).spoken(DialectSet::CORE26),
    Route::get("/api/blockchain", Query::Ignored, node::blockchain).shows("The newest block and the supply.", AnswerShape::Data(Shape::Table(&node::BLOCKCHAIN))).of_chain(),
    Route::get("/api/rounds/{id}/delegates", Query::Ignored, delegates::of_round).shows("The delegates of a round.", AnswerShape::Data(delegates::ROUND_SHAPE)).of(ROUND).dated(),

    Route::get("/api/blocks", Query::Only(&[PAGING, block::ORDERED, block::FILTERS, TRANSFORM]), blocks::list).shows("Blocks, newest first.", AnswerShape::Counted(block::SHAPE)).dated(),
    Route::get("/api/blocks/first", ONE, blocks::first).shows("The genesis block.", AnswerShape::Data(block::END_SHAPE)).of_chain(),
    Route::get("/api/blocks/last", ONE, blocks::last).shows("The newest block.", AnswerShape::Data(block::END_SHAPE)).of_chain(),
    Route::get("/api/blocks/{id}", ONE, blocks::show).shows("One block, by height or id.", AnswerShape::Data(block::SHAPE)).of(block::PATH_ID).dated(),
    Route::get("/api/blocks/{id}/transactions", Query::Only(&[PAGING, transaction::ORDERED, transaction::OF_BLOCK, TRANSFORM]), transactions::of_block).shows("The transactions of a block.", AnswerShape::Counted(transaction::SHAPE)).of(BY_TEXT).dated(),
    Route::search("/api/blocks/search", Query::Only(&[PAGING, const { &[block::ORDERED[0].if_documented()] }, TRANSFORM]), &[block::ORDERED, block::SEARCH], blocks::list).shows("Searches blocks.", AnswerShape::Counted(block::SHAPE)).dated(),

    Route::later(Verb::Post, "/api/transactions", Query::Ignored, |call| Box::pin(submit::submit(call))).shows("Submits signed transactions.", AnswerShape::Whole(submit::SHAPE)),
    Route::get("/api/transactions", Query::Only(&[PAGING, transaction::ORDERED, transaction::FILTERS, TRANSFORM]), transactions::list).shows("Confirmed transactions, newest first.", AnswerShape::Counted(transaction::SHAPE)).dated(),
    Route::search("/api/transactions/search", Query::Only(&[PAGING, const { &[transaction::ORDERED[0].if_documented()] }, TRANSFORM]), &[transaction::ORDERED, transaction::SEARCH], transactions::list).shows("Searches confirmed transactions.", AnswerShape::Counted(transaction::SHAPE)).dated(),
    Route::get("/api/transactions/types", Query::Ignored, types::types).shows("The types of transactions in force.", AnswerShape::Data(types::TYPES_SHAPE)).of_chain(),
    Route::get("/api/transactions/fees", Query::Ignored, types::fees).shows("The static fees of the types of transactions in force.", AnswerShape::Data(types::FEES_SHAPE)).of_chain(),
    Route::get("/api/transactions/schemas", Query::Ignored, types::schemas).shows("The schema of each type of transactions.", AnswerShape::Data(types::SCHEMAS_SHAPE)).of_chain(),
    Route::later(Verb::Get, "/api/transactions/unconfirmed", Query::Only(&[PAGING, TRANSFORM]), |call| Box::pin(transactions::unconfirmed(call))).shows("Pending transactions, in the order in which they would be forged.", AnswerShape::Page(transaction::SHAPE)),
    Route::get("/api/transactions/unconfirmed/{id}", SHOWN_AS_TOLD, transactions::show_unconfirmed).shows("One pending transaction.", AnswerShape::Data(transaction::SHAPE)).of(transaction::PATH_ID),
    Route::get("/api/transactions/{id}", ONE, transactions::show).shows("One confirmed transaction.", AnswerShape::Data(transaction::SHAPE)).of(transaction::PATH_ID).dated(),

    Route::get("/api/votes", Query::Only(&[PAGING, transaction::ORDERED, transaction::VOTES, TRANSFORM]), votes::list).shows("Votes, newest first.", AnswerShape::Counted(transaction::SHAPE)).dated(),
    Route::get("/api/votes/{id}", ONE, votes::show).shows("One vote.", AnswerShape::Data(transaction::SHAPE)).of(transaction::PATH_ID).dated(),

    Route::get("/api/wallets", Query::Only(&[PAGING, wallet::ORDERED, wallet::FILTERS]), wallets::list).shows("Wallets, richest first.", AnswerShape::Page(wallet::SHAPE)).dated(),
    Route::get("/api/wallets/top", Query::Only(&[PAGING, wallet::ORDERED, wallet::FILTERS]), wallets::top).shows("Wallets, richest first.", AnswerShape::Page(wallet::SHAPE)).dated(),
    Route::get("/api/wallets/{id}", Query::Ignored, wallets::show).shows("One wallet, by address, public key or username.", AnswerShape::Data(wallet::SHAPE)).of(wallet::PATH_ID).dated(),
    Route::get("/api/wallets/{id}/transactions", Query::Only(&[PAGING, transaction::ORDERED, transaction::OF_WALLET, TRANSFORM]), wallets::transactions).shows("The transactions of a wallet in any role.", AnswerShape::Counted(transaction::SHAPE)).of(wallet::PATH_ID).dated(),
    Route::get("/api/wallets/{id}/transactions/sent", Query::Only(&[PAGING, transaction::ORDERED, transaction::OF_WALLET, transaction::SENT, TRANSFORM]), wallets::sent).shows("The transactions that a wallet sent.", AnswerShape::Counted(transaction::SHAPE)).of(wallet::PATH_ID).dated(),
    Route::get("/api/wallets/{id}/transactions/received", Query::Only(&[PAGING, transaction::ORDERED, transaction::OF_WALLET, transaction::RECEIVED, TRANSFORM]), wallets::received).shows("The transactions that a wallet received.", AnswerShape::Counted(transaction::SHAPE)).of(wallet::PATH_ID).dated(),
    Route::get("/api/wallets/{id}/votes", Query::Only(&[PAGING, TRANSFORM]), wallets::votes).shows("The votes of a wallet.", AnswerShape::Counted(transaction::SHAPE)).of(wallet::PATH_ID).dated(),

    Route::get("/api/wallets/{id}/locks", Query::Only(&[PAGING, lock::ORDERED, lock::OF_WALLET]), locks::of_wallet).shows("The open locks of a wallet.", AnswerShape::Counted(lock::SHAPE)).of(wallet::PATH_ID).dated(),
    Route::search("/api/wallets/search", Query::Only(&[PAGING, wallet::ORDERED]), &[const { &[wallet::ORDERED[0].if_documented()] }, wallet::SEARCH], wallets::search_all).shows("Searches wallets.", AnswerShape::Page(wallet::FOUND_SHAPE)).dated(),

    Route::get("/api/delegates", Query::Only(&[PAGING, delegate::ORDERED, delegate::TYPE, delegate::FILTERS]), delegates::list).shows("Delegates, by rank.", AnswerShape::Page(delegate::SHAPE)).dated(),
    Route::get("/api/delegates/{id}", Query::Ignored, delegates::show).shows("One delegate, by username, address or public key.", AnswerShape::Data(delegate::SHAPE)).of(wallet::PATH_ID).dated(),
    Route::get("/api/delegates/{id}/blocks", Query::Only(&[PAGING, block::ORDERED, block::OF_DELEGATE, TRANSFORM]), delegates::blocks).shows("The blocks of a delegate, newest first.", AnswerShape::Counted(block::SHAPE)).of(wallet::PATH_ID).dated(),
    Route::get("/api/delegates/{id}/voters", Query::Only(&[PAGING, wallet::ORDERED, wallet::VOTERS, TRANSFORM]), delegates::voters).shows("The wallets that vote for a delegate.", AnswerShape::Page(wallet::FOUND_SHAPE)).of(wallet::PATH_ID).dated(),
    Route::search("/api/delegates/search", Query::Only(&[PAGING, delegate::ORDERED]), &[const { &[delegate::ORDERED[0].if_documented()] }, delegate::SEARCH], delegates::list).shows("Searches delegates.", AnswerShape::Page(delegate::SHAPE)).dated(),

    Route::get("/api/locks", Query::Only(&[PAGING, lock::ORDERED, lock::FILTERS]), locks::list).shows("Open locks.", AnswerShape::Page(lock::SHAPE)).dated(),
    Route::get("/api/locks/search", Query::Only(&[PAGING, const { &[lock::ORDERED[0].if_documented()] }, lock::SEARCH]), locks::list).shows("Searches open locks.", AnswerShape::Page(lock::SHAPE)).with_body(&[const { &[lock::ORDERED[0].if_documented()] }, lock::SEARCH]).spoken(DialectSet::DOCUMENTED).dated(),
    Route::get("/api/locks/unlocked", Query::Only(&[PAGING, UNLOCKED_ORDER, lock::UNLOCKED]), locks::unlocked).shows("The claims and refunds of locks.", AnswerShape::Page(transaction::UNLOCKED_SHAPE)).spoken(DialectSet::DOCUMENTED).dated(),
    Route::get("/api/locks/{id}", Query::Ignored, locks::show).shows("One open lock.", AnswerShape::Data(lock::SHAPE)).of(transaction::PATH_ID).dated(),
    Route::search("/api/locks/search", Query::Only(&[PAGING, lock::ORDERED]), &[const { &[lock::ORDERED[0].if_documented()] }, lock::SEARCH], locks::list).shows("Searches open locks.", AnswerShape::Page(lock::SHAPE)).dated(),
    Route::search("/api/locks/unlocked", Query::Only(&[PAGING, UNLOCKED_ORDER]), &[lock::UNLOCKED], locks::unlocked).shows("The claims and refunds of locks.", AnswerShape::Page(transaction::UNLOCKED_SHAPE)).dated(),

    Route::get("/api/businesses", Query::Only(&[PAGING, business::ORDERED, business::FILTERS, TRANSFORM]), businesses::list).shows("Businesses, by name.", AnswerShape::Page(business::SHAPE)).dated(),
    Route::get("/api/businesses/{id}", ONE, businesses::show).shows("One business, by the wallet it belongs to.", AnswerShape::Data(business::SHAPE)).of(wallet::PATH_ID).dated(),
    Route::get("/api/business/{id}", ONE, businesses::show).shows("One business, by the wallet it belongs to.", AnswerShape::Data(business::SHAPE)).of(wallet::PATH_ID).spoken(DialectSet::DOCUMENTED).dated(),
    Route::get("/api/businesses/{id}/bridgechains", Query::Only(&[PAGING, business::CHAINS_ORDERED, business::CHAINS_OF_BUSINESS]), businesses::chains).shows("The bridgechains of a business.", AnswerShape::Page(business::CHAIN_SHAPE)).of(wallet::PATH_ID).dated(),
    Route::get("/api/businesses/{businessId}/bridgechains/{bridgechainId}", Query::Ignored, businesses::chain).shows("One bridgechain of a business.", AnswerShape::Data(attributes::BRIDGECHAIN_SHAPE)).of(business::PATH_CHAIN).dated(),
    Route::search("/api/businesses/search", Query::Only(&[PAGING, business::ORDERED]), &[const { &[business::ORDERED[0].if_documented()] }, business::SEARCH, TRANSFORM], businesses::list).shows("Searches businesses.", AnswerShape::Page(business::SHAPE)).dated(),
    Route::get("/api/bridgechains", Query::Only(&[PAGING, business::CHAINS_ORDERED, business::CHAIN_FILTERS]), businesses::all_chains).shows("Bridgechains, by name.", AnswerShape::Page(business::CHAIN_SHAPE)).dated(),
    Route::search("/api/bridgechains/search", Query::Only(&[PAGING, business::CHAINS_ORDERED]), &[const { &[business::CHAINS_ORDERED[0].if_documented()] }, business::CHAIN_SEARCH], businesses::all_chains).shows("Searches bridgechains.", AnswerShape::Page(business::CHAIN_SHAPE)).dated(),

    Route::get("/api/openapi.json", Query::Ignored, docs::description).shows("This description.", AnswerShape::Whole(Shape::Map(&Shape::Any))).of_chain(),
    Route::get("/api/docs", Query::Ignored, docs::entrance).shows("Leads to the page that shows this description.", AnswerShape::Site),
    Route::get("/api/docs/{file}", Query::Ignored, docs::file).of(BY_FILE).shows("The page that shows this description, and its parts.", AnswerShape::Site),

    Route::get("/about", Query::Ignored, home::about).shows("Where everything is, as a page without scripts.", AnswerShape::Html),
    Route::get("/page/{file}", Query::Ignored, home::part).of(BY_FILE).shows("The parts of the page at `/`.", AnswerShape::Site),

    Route::later(Verb::Get, "/watch", Query::Only(&[public::FROM]), |call| Box::pin(public::watch(call))).shows("The public picture of the whole network: the clock, the nodes, the blocks of all forks, the round, faults and the newest events.", AnswerShape::Data(Shape::Table(&public::PICTURE))),
    Route::later(Verb::Post, "/faucet", Query::Ignored, |call| Box::pin(public::faucet(call))).shows("Pays the operator's amount to an address, if there is a public faucet.", AnswerShape::Data(Shape::Table(&money::PAID))).written(Shape::Own(public::faucet_schema)).or_missing().or_conflicting(),

    Route::get("/api/peers", Query::Only(&[PAGING, peer::ORDERED, peer::FILTERS]), peers::list).shows("The other nodes, nearest first. Those that serve an API are named by its address and port.", AnswerShape::Page(peer::SHAPE)).or_missing(),
    Route::get("/api/peers/{ip}", Query::Ignored, peers::show).shows("One of the other nodes.", AnswerShape::Data(peer::SHAPE)).of(peer::PATH_IP),

    Route::later(Verb::Get, "/api/webhooks", Query::Only(&[PAGING]), |call| Box::pin(webhooks::list(call))).shows("Webhooks.", AnswerShape::Page(webhook::SHAPE)).or_missing().for_webhooks().spoken(DialectSet::DOCUMENTED),
    Route::later(Verb::Get, "/api/webhooks", Query::Ignored, |call| Box::pin(webhooks::list_all(call))).shows("Webhooks.", AnswerShape::Data(Shape::List(&webhook::SHAPE))).or_missing().for_webhooks().spoken(DialectSet::CORE26),
    Route::later(Verb::Post, "/api/webhooks", Query::Ignored, |call| Box::pin(webhooks::create(call))).shows("Creates a webhook, and tells its token this once.", AnswerShape::Created(webhook::SHAPE)).or_missing().with_body(&[webhook::NEW]).for_webhooks(),
    Route::later(Verb::Get, "/api/webhooks/{id}", Query::Ignored, |call| Box::pin(webhooks::show(call))).shows("One webhook.", AnswerShape::Data(webhook::SHAPE)).of(BY_TEXT).for_webhooks(),
    Route::later(Verb::Put, "/api/webhooks/{id}", Query::Ignored, |call| Box::pin(webhooks::update(call))).shows("Changes a webhook, which keeps its token.", AnswerShape::Nothing).of(BY_TEXT).with_body(&[webhook::CHANGE]).for_webhooks(),
    Route::later(Verb::Delete, "/api/webhooks/{id}", Query::Ignored, |call| Box::pin(webhooks::delete(call))).shows("Deletes a webhook.", AnswerShape::Nothing).of(BY_TEXT).for_webhooks(),

    Route::later(Verb::Get, "/lab", Query::Only(&[watch::LAB]), |call| Box::pin(watch::lab(call))).shows("The whole network: the clock, where every node stands, the faults in force, and the snapshots.", AnswerShape::Data(Shape::Table(&watch::MEMBERS))).on_loopback(),
    Route::get("/lab/events", Query::Only(&[watch::EVENTS]), watch::events).shows("The events of the network, as a stream of server-sent events.", AnswerShape::Events(watch::EVENTS_EXAMPLE)).on_loopback(),
    Route::get("/lab/happened", Query::Ignored, watch::happened).shows("The newest events that the page lists, the newest last.", AnswerShape::Data(Shape::List(&Shape::Any))).on_loopback(),
    Route::get("/lab/tree", Query::Only(&[forks::FROM]), forks::tree).shows("The blocks of all forks from a height on, and how many nodes stand on each.", AnswerShape::Data(Shape::Table(&forks::TREE))).on_loopback(),
    Route::later(Verb::Get, "/lab/round", Query::Ignored, |call| Box::pin(forks::round(call))).shows("The slots of the round in force: whose each is, and what became of it. `blocks` is the number of blocks that make the round.", AnswerShape::Data(Shape::Table(&forks::ROUND))).on_loopback(),
    Route::get("/lab/chaos", Query::Ignored, chaos::list).shows("The rules by which answers and posts go wrong, and what they did.", AnswerShape::Data(Shape::List(&chaos::SHAPE))).on_loopback(),
    Route::later(Verb::Post, "/lab/chaos", Query::Ignored, |call| Box::pin(chaos::create(call))).shows("Makes answers or posts go wrong from now on.", AnswerShape::Created(chaos::SHAPE)).with_body(&[chaos::NEW]).on_loopback(),
    Route::later(Verb::Delete, "/lab/chaos", Query::Ignored, |call| Box::pin(chaos::clear(call))).shows("Deletes all rules.", AnswerShape::Data(Shape::Table(&chaos::CLEARED))).on_loopback(),
    Route::get("/lab/chaos/{id}", Query::Ignored, chaos::show).shows("One rule, and what it did.", AnswerShape::Data(chaos::SHAPE)).of(chaos::PATH_ID).on_loopback(),
    Route::later(Verb::Delete, "/lab/chaos/{id}", Query::Ignored, |call| Box::pin(chaos::delete(call))).shows("Deletes a rule, and answers with what it did.", AnswerShape::Data(chaos::SHAPE)).of(chaos::PATH_ID).on_loopback(),
    Route::later(Verb::Get, "/metrics", Query::Ignored, |call| Box::pin(metrics::metrics(call))).shows("Figures of the network, the server and the process, for Prometheus.", AnswerShape::Metrics).on_loopback(),
    Route::later(Verb::Get, "/lab/webhooks", Query::Ignored, |call| Box::pin(webhooks::counts(call))).shows("How often each webhook was posted, and what came of it.", AnswerShape::Data(Shape::Table(&webhooks::COUNTS))).or_missing().on_loopback(),
    Route::later(Verb::Get, "/lab/recording", Query::Ignored, |call| Box::pin(recording::recording(call))).shows("All that came into the network so far, as a file for `dposlab replay`.", AnswerShape::Bytes).or_missing().or_conflicting().on_loopback(),
    Route::get("/lab/submissions", Query::Ignored, submissions::list).shows("The newest transactions that clients handed in, and what the nodes answered about each.", AnswerShape::Data(submissions::SHAPE)).on_loopback(),
    Route::later(Verb::Post, "/lab/advance", Query::Ignored, |call| Box::pin(lab::advance(call))).shows("Plays the requested number of slots at full speed, or until a condition holds. Answers at the end, or when the pace is set meanwhile.", AnswerShape::Data(Shape::Table(&lab::ADVANCE))).written(Shape::Own(goal::schema)).or_conflicting().on_loopback(),
    Route::later(Verb::Post, "/lab/pace", Query::Ignored, |call| Box::pin(lab::set_pace(call))).shows("Sets how many virtual seconds pass in a real one, and ends an advance that is going on.", AnswerShape::Data(Shape::Table(&lab::PACE))).written(Shape::Own(lab::pace_schema)).on_loopback(),
    Route::later(Verb::Post, "/lab/faucet", Query::Ignored, |call| Box::pin(money::faucet(call))).shows("Pays the given recipients, by transactions that the funded accounts sign.", AnswerShape::Data(Shape::Table(&money::PAID))).written(Shape::Own(money::faucet_schema)).or_conflicting().on_loopback(),
    Route::later(Verb::Post, "/lab/accounts", Query::Ignored, |call| Box::pin(money::accounts(call))).shows("Makes new accounts, and has the funded ones pay them.", AnswerShape::Data(Shape::Table(&money::OPENED))).written(Shape::Own(money::accounts_schema)).or_conflicting().on_loopback(),
    Route::later(Verb::Get, "/lab/pace", Query::Ignored, |call| Box::pin(lab::pace(call))).shows("The pace, and the virtual time.", AnswerShape::Data(Shape::Table(&lab::PACE))).on_loopback(),
    Route::later(Verb::Get, "/lab/faults", Query::Ignored, |call| Box::pin(faults::list(call))).shows("All faults of the run, and how each stands.", AnswerShape::Data(Shape::List(&fault::SHAPE))).on_loopback(),
    Route::later(Verb::Post, "/lab/faults", Query::Ignored, |call| Box::pin(faults::add(call))).shows("Adds a fault, as in a scenario file: it begins now, or when its trigger fires.", AnswerShape::Created(fault::SHAPE)).written(fault::WRITTEN).or_missing().on_loopback(),
    Route::later(Verb::Delete, "/lab/faults/{id}", Query::Ignored, |call| Box::pin(faults::end(call))).shows("Ends a fault now; one that waits never begins.", AnswerShape::Nothing).of(fault::PATH_ID).on_loopback(),
    Route::later(Verb::Post, "/lab/nodes/{node}/crash", Query::Ignored, |call| Box::pin(faults::crash(call))).shows("Crashes a node, which is down until it is restarted.", AnswerShape::Created(fault::SHAPE)).of(fault::PATH_NODE).with_body(&[fault::BACK]).on_loopback(),
    Route::later(Verb::Post, "/lab/nodes/{node}/restart", Query::Ignored, |call| Box::pin(faults::restart(call))).shows("Restarts a node, whatever crash kept it down.", AnswerShape::Created(fault::SHAPE)).of(fault::PATH_NODE).with_body(&[fault::BACK]).on_loopback(),
    Route::later(Verb::Post, "/lab/reorg", Query::Ignored, |call| Box::pin(reorg::reorganise(call))).shows("Has the nodes leave the end of their chain for another branch, which the delegates of these slots sign.", AnswerShape::Data(Shape::Table(&reorg::DONE))).written(Shape::Own(reorg::body_schema)).on_loopback(),
    Route::later(Verb::Post, "/lab/blocks", Query::Ignored, |call| Box::pin(interventions::push_block(call))).shows("Hands in a block that the client has made, as a peer pushes one, and answers once the node has taken it.", AnswerShape::Data(Shape::Table(&interventions::TAKEN))).written(Shape::Own(interventions::block_schema)).or_conflicting().on_loopback(),
    Route::later(Verb::Delete, "/lab/pool/{id}", Query::Ignored, |call| Box::pin(interventions::drop_pending(call))).shows("Takes a pending transaction out of all pools, and out of what is under way to them.", AnswerShape::Data(Shape::Table(&interventions::DROPPED))).of(transaction::PATH_ID).on_loopback(),
    Route::later(Verb::Post, "/lab/chains", Query::Ignored, |call| Box::pin(chains::make(call))).shows("Makes an isolated chain in this process: its API is below `/chains/{id}/api`, and `/chains/{id}/lab` steers it.", AnswerShape::Created(chains::SHAPE)).with_body(&[chains::NEW]).or_missing().on_loopback(),
    Route::get("/lab/chains", Query::Ignored, chains::list).shows("The isolated chains of this process.", AnswerShape::Data(chains::LIST_SHAPE)).or_missing().on_loopback(),
    Route::get("/lab/chains/{id}", Query::Ignored, chains::show).shows("One isolated chain.", AnswerShape::Data(chains::SHAPE)).of(BY_NUMBER).on_loopback(),
    Route::new(Verb::Delete, "/lab/chains/{id}", Query::Ignored, Handle::Now(chains::delete)).shows("Stops an isolated chain and frees what it takes.", AnswerShape::Nothing).of(BY_NUMBER).on_loopback(),
    Route::later(Verb::Post, "/lab/views", Query::Ignored, |call| Box::pin(views::open(call))).shows("Opens a view of the network as it was at an earlier instant, or a step away from there: `/views/{id}/api` and `/views/{id}/lab` answer as the API answered then.", AnswerShape::Created(views::SHAPE)).with_body(&[views::NEW]).or_missing().or_conflicting().on_loopback(),
    Route::later(Verb::Get, "/lab/views", Query::Ignored, |call| Box::pin(views::list(call))).shows("The past that can be gone back to, and the views of it that are open.", AnswerShape::Data(Shape::Table(&views::LIST))).or_missing().on_loopback(),
    Route::get("/lab/views/{id}", Query::Ignored, views::show).shows("One view of the past.", AnswerShape::Data(views::SHAPE)).of(BY_NUMBER).on_loopback(),
    Route::new(Verb::Delete, "/lab/views/{id}", Query::Ignored, Handle::Now(views::delete)).shows("Closes a view of the past.", AnswerShape::Nothing).of(BY_NUMBER).on_loopback(),
    Route::later(Verb::Post, "/lab/views/{id}/chain", Query::Ignored, |call| Box::pin(views::go_on(call))).shows("Makes an isolated chain that goes on from where a view is.", AnswerShape::Created(chains::SHAPE)).of(BY_NUMBER).with_body(&[snapshots::NOTHING]).on_loopback(),
    Route::later(Verb::Post, "/lab/snapshots", Query::Ignored, |call| Box::pin(snapshots::take(call))).shows("Keeps the whole network as it is now: every node, pool, timer, message under way and random stream, and the clock.", AnswerShape::Created(snapshots::SHAPE)).with_body(&[snapshots::NEW]).on_loopback(),
    Route::later(Verb::Get, "/lab/snapshots", Query::Ignored, |call| Box::pin(snapshots::list(call))).shows("The snapshots, oldest first.", AnswerShape::Data(snapshots::LIST_SHAPE)).on_loopback(),
    Route::later(Verb::Get, "/lab/snapshots/{id}", Query::Ignored, |call| Box::pin(snapshots::show(call))).shows("One snapshot.", AnswerShape::Data(snapshots::SHAPE)).of(BY_NUMBER).on_loopback(),
    Route::later(Verb::Delete, "/lab/snapshots/{id}", Query::Ignored, |call| Box::pin(snapshots::delete(call))).shows("Deletes a snapshot.", AnswerShape::Nothing).of(BY_NUMBER).on_loopback(),
    Route::later(Verb::Post, "/lab/snapshots/{id}/revert", Query::Ignored, |call| Box::pin(snapshots::revert(call))).shows("Puts the whole network where it was when the snapshot was taken. A snapshot can be gone back to any number of times, later ones too.", AnswerShape::Data(snapshots::SHAPE)).of(BY_NUMBER).with_body(&[snapshots::NOTHING]).on_loopback(),
    Route::later(Verb::Get, "/lab/snapshots/{id}/file", Query::Ignored, |call| Box::pin(snapshots::file(call))).shows("The network of a snapshot as a file for `dposlab up --from`.", AnswerShape::Bytes).of(BY_NUMBER).on_loopback(),
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

    /// A command of a `console` block is run by a test, which holds its output against what is shown.
    #[test]
    fn every_route_of_the_lab_is_shown_with_curl() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/lab.md");
        let text = std::fs::read_to_string(file).expect("it is there");
        let asked: Vec<(Verb, String)> =
            text.lines().filter_map(|line| line.strip_prefix("$ curl ")).map(shown).collect();
        for route in ROUTES.iter().filter(|route| is_guarded(route.path) || route.path == "/metrics") {
            let is_shown = |(verb, path): &(Verb, String)| *verb == route.verb && route.leads_to(path, &mut Vec::new());
            let is_of_lab = !route.path.starts_with("/api");
            assert!(
                !is_of_lab || asked.iter().any(is_shown),
                "docs/lab.md shows no curl of {:?} {}",
                route.verb,
                route.path
            );
        }
        assert!(asked.iter().any(|(_, path)| path.starts_with("/chains/1/lab")), "nor of a chain's lab");
        assert!(asked.iter().any(|(_, path)| path.starts_with("/chains/1/api")), "nor of a chain's API");
    }

    /// Returns the request that a call of curl makes.
    fn shown(arguments: &str) -> (Verb, String) {
        let verb = match arguments {
            _ if arguments.contains("-X DELETE") => Verb::Delete,
            _ if arguments.contains("-X POST") || arguments.contains(" -d ") => Verb::Post,
            _ => Verb::Get,
        };
        let after = arguments.split_once("http://127.0.0.1:4003").map_or("", |(_, after)| after);
        let end = after.find(['?', ' ', '\'']).unwrap_or(after.len());
        (verb, after[..end].to_owned())
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
