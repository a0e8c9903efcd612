//! Views of the past: opening, listing and closing them, and going on from one.

use super::chains::{self, ChainRow};
use crate::{
    actors::{NodeId, SimTime},
    api::{
        context::{ApiContext, Chain, Views},
        http::{ApiError, Reply},
        lab::{
            chains::{ChainAccount, ChainOrigin},
            chaos::Chaos,
            views::{ArrivedCopy, Away, By, Instant, MISSING, NetworkObservers, PastView, ViewWish, copied, prefix},
        },
        table::{Bound, Call, Member, Outcome, Parameter, Rule, Shape, both, shape::BLOCK_ID},
    },
    ledger::Link,
    sim::past::WalkStep,
};
use std::sync::Arc;

/// The parameters of a new view.
pub(crate) const NEW: &[Parameter] = &[
    both("at", Rule::Integer(Bound::Least(0))),
    both("delivered", Rule::Integer(Bound::Least(0))),
    both("inputs", Rule::Integer(Bound::Least(0))),
    both("view", Rule::Integer(Bound::Least(1))),
    both("step", Rule::OneOf(&["event", "slot", "block", "round"])),
    both("back", Rule::Boolean),
    both("node", Rule::Integer(Bound::Between(0, u32::MAX as i64))),
];

/// A view with its number and its address.
struct ViewRow {
    id: u64,
    /// The URL of the view's prefix.
    at: String,
    view: Arc<PastView<ApiContext>>,
    /// The newest block of the winning chain.
    tip: Arc<Link>,
}

impl ViewRow {
    fn of((id, view): (u64, Arc<PastView<ApiContext>>), call: &Call<'_>) -> Self {
        let tip = view.context.board.state().tips.winning().clone();
        Self { id, at: format!("http://{}{}", call.request.host_or_default(), prefix(id)), view, tip }
    }
}

/// The members of a view. `url` is the base of its API, `lab` that of its lab; `at` is in microseconds, `now` in seconds of the
/// network's epoch; `delivered` and `inputs` say where within that instant it is. `height` and `tip` are those of the winning
/// chain.
const MEMBERS: &[Member<ViewRow>] = &[
    Member::new("id", Shape::Integer, |row, _| row.id.into()),
    Member::new("url", Shape::Text, |row, _| format!("{}/api", row.at).into()),
    Member::new("lab", Shape::Text, |row, _| format!("{}/lab", row.at).into()),
    Member::new("node", Shape::Integer, |row, _| row.view.context.view.node().0.into()),
    Member::new("at", Shape::Integer, |row, _| row.view.place.at.micros().into()),
    Member::new("now", Shape::Integer, |row, _| row.view.place.at.seconds().into()),
    Member::new("delivered", Shape::Integer, |row, _| row.view.place.delivered.into()),
    Member::new("inputs", Shape::Integer, |row, _| row.view.place.inputs.into()),
    Member::new("slot", Shape::Integer, |row, _| {
        row.view.context.view.tree().slots().slot(row.view.place.at.seconds()).0.into()
    }),
    Member::new("round", Shape::Integer, |row, _| {
        row.view.context.view.tree().schedule().at(row.tip.height().next()).round.0.into()
    }),
    Member::new("height", Shape::Integer, |row, _| row.tip.height().into()),
    Member::new("tip", BLOCK_ID, |row, _| row.tip.id().into()),
];
/// The shape of a view.
pub(crate) const SHAPE: Shape = Shape::Table(&MEMBERS);
/// The members of the retained past. It reaches from the instant `first` to `last`, which is now. `moments` and `bytes` are the
/// number of stored moments and their size. `views` are the open views.
pub(crate) const LIST: &[Member<Past>] = &[
    Member::new("first", Shape::Integer, |past, _| past.first.micros().into()),
    Member::new("last", Shape::Integer, |past, _| past.last.micros().into()),
    Member::new("moments", Shape::Integer, |past, _| past.size.0.into()),
    Member::new("bytes", Shape::Integer, |past, _| past.size.1.into()),
    Member::by("views", Shape::List(&SHAPE), |past, frame, slot| slot.rows(MEMBERS, &past.views, frame)),
];

/// The retained past and its open views.
pub(crate) struct Past {
    first: SimTime,
    last: SimTime,
    size: (usize, usize),
    views: Vec<ViewRow>,
}

/// `POST /lab/views {"at"?, "delivered"?, "inputs"?, "view"?, "step"?, "back"?, "node"?}`.
pub(crate) async fn open(call: Call<'_>) -> Outcome {
    let views = views(&call)?;
    let opened = opened(views, wish(&call)?, call.context).await?;
    Ok(call.show_row(MEMBERS, &ViewRow::of(opened, &call)).created())
}

/// `GET /lab/views`.
pub(crate) async fn list(call: Call<'_>) -> Outcome {
    let views = views(&call)?;
    let last = call.context.live.now().await.map_or_else(|_| call.context.view.now(), |(now, _)| now);
    let (first, size) = (views.past().first().map_or(last, |place| place.at), views.past().size());
    let views = views.list().into_iter().map(|view| ViewRow::of(view, &call)).collect();
    Ok(call.show_row(LIST, &Past { first, last, size, views }))
}

/// `GET /lab/views/{id}`.
pub(crate) fn show(call: &Call<'_>) -> Outcome {
    let id = call.id()?;
    let view = views(call)?.get(id).ok_or(MISSING)?;
    Ok(call.show_row(MEMBERS, &ViewRow::of((id, view), call)))
}

/// `DELETE /lab/views/{id}`.
pub(crate) fn delete(call: &Call<'_>) -> Outcome {
    if views(call)?.delete(call.id()?) { Ok(Reply::nothing()) } else { Err(MISSING) }
}

/// `POST /lab/views/{id}/chain`: makes an isolated chain that continues from the view.
pub(crate) async fn go_on(call: Call<'_>) -> Outcome {
    let view = views(&call)?.get(call.id()?).ok_or(MISSING)?;
    let all = call.context.chains.as_ref().ok_or(ApiError::NO_ROUTE)?;
    let added = all.add(gone_on(&view, call.context).await?)?;
    // Another client may have deleted it by then.
    let _deleted = added.1.context.live.now().await;
    Ok(call.show_row(chains::MEMBERS, &ChainRow::of(added, &call)).created())
}

/// The past posts no webhooks, and its events have no numbers from which a chain could continue.
pub(crate) const NO_WEBHOOKS: ApiError = ApiError::NotFound(
    "a view of the past has no webhooks, nor has a chain that goes on from one: those of the testnet are at /api/webhooks, and a chain \
     of POST /lab/chains has its own; GET …/lab/events tells what happens",
);

/// Opens a view of the past of `beside`'s network. Returns it with its number.
async fn opened(
    views: &Views,
    wish: ViewWish,
    beside: &ApiContext,
) -> Result<(u64, Arc<PastView<ApiContext>>), ApiError> {
    let ArrivedCopy { live, view, board, feed, place, reverts } =
        views.come(wish, &beside.live, beside.board.nodes()).await?;
    let chaos = Chaos::new(board.seed().unwrap_or_default(), wish.node, Arc::new(vec![view.clone()].into()));
    let context = ApiContext { board, feed, chaos, ..beside.behind_the_same_server(view, live) };
    Ok(views.keep(PastView { context, place, reverts }))
}

/// An isolated chain that goes on from a view, at a manual pace.
///
/// # Errors
/// The view was closed meanwhile.
async fn gone_on(from: &PastView<ApiContext>, beside: &ApiContext) -> Result<Chain, ApiError> {
    let observed = NetworkObservers { views: vec![from.context.view.apart()], board: from.context.board.apart() };
    let (node, place) = (from.context.view.node(), from.place);
    let ArrivedCopy { live, view, board, feed, .. } = copied(&from.context.live, observed, node, place).await?;
    let seed = board.seed().unwrap_or_default();
    let (tree, byte) = (view.tree().clone(), view.tree().config().network.pub_key_hash);
    let chaos = Chaos::new(seed, node, Arc::new(vec![view.clone()].into()));
    let funds = beside.funds.as_ref().map(|funds| Arc::new(funds.apart()));
    let height = board.state().tips.leading().height();
    Ok(Chain {
        origin: Some(ChainOrigin { place, height }),
        seed,
        delegates: board.delegates().iter().flatten().count() as u32,
        nethash: tree.config().network.nethash.to_string(),
        accounts: funds
            .iter()
            .flat_map(|funds| funds.accounts())
            .map(|account| ChainAccount::of(account, byte))
            .collect(),
        context: ApiContext {
            funds,
            desk: beside.desk.clone(),
            write_state: beside.write_state.clone(),
            recording: Some(Arc::new(|_, _| Err(ApiError::Conflict(NO_RECORDING.to_owned())))),
            board,
            feed,
            chaos,
            ..beside.behind_the_same_server(view, live)
        },
    })
}

/// The message of a chain that began in the midst of another network, about its recording.
const NO_RECORDING: &str = "this chain began where another network was, so it has no recording of its own; a snapshot's file \
                            holds all that came in";

fn views<'c>(call: &'c Call<'_>) -> Result<&'c Views, ApiError> {
    call.context.views.as_ref().ok_or(NO_PAST)
}

/// The error of a network whose past is not retained.
const NO_PAST: ApiError =
    ApiError::NotFound("no past is kept of this network: isolated chains and views of the past have none");

fn wish(call: &Call<'_>) -> Result<ViewWish, ApiError> {
    let given = &call.parameters;
    let at = given.number("at").map(SimTime::from_micros);
    let inputs = given.number("inputs");
    let instant = match (at, given.number("delivered"), given.number("view")) {
        (Some(_), _, Some(_)) => {
            return Err(ApiError::unprocessable("keys 'at' and 'view': allowed is one of them"));
        }
        (Some(at), Some(delivered), None) => Instant::Within { at, delivered, inputs },
        (Some(at), None, None) => Instant::At(at),
        (None, None, Some(id)) => Instant::Of(id),
        (None, None, None) => Instant::Now,
        (None, Some(_), _) => {
            return Err(ApiError::unprocessable("key 'delivered': allowed beside 'at' only"));
        }
    };
    if inputs.is_some() && !matches!(instant, Instant::Within { .. }) {
        return Err(ApiError::unprocessable("key 'inputs': allowed beside 'at' and 'delivered' only"));
    }
    let step = given.text("step").map(|word| match word {
        "slot" => By::Slot,
        "block" => By::Other(WalkStep::Block),
        "round" => By::Other(WalkStep::Round),
        _ => By::Other(WalkStep::Event),
    });
    let is_back = given.flag("back") == Some(true);
    if is_back && step.is_none() {
        return Err(ApiError::unprocessable("key 'back': allowed beside 'step' only"));
    }
    let node = given.number("node").map(NodeId).unwrap_or_else(|| {
        let from = match instant {
            Instant::Of(id) => call.context.views.as_ref().and_then(|views| views.get(id)),
            _ => None,
        };
        from.map_or_else(|| call.context.view.node(), |view| view.context.view.node())
    });
    Ok(ViewWish { instant, away: step.map(|step| Away { step, is_back }), node })
}
