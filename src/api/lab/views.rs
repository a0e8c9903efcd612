//! Views of the past: the network as it was at an earlier instant, under a path of its own.
//!
//! `/views/{id}/api` and `/views/{id}/lab` answer as `/api` and `/lab` answered then, from a copy of the network that does not advance.
//! The copy is made from a stored moment on a thread of its own ([`Past`]), so the live network neither waits for it nor changes by it.
//! An isolated chain can continue from a view.

use super::{
    board::LabBoard,
    chains::{Running, split_below},
    feed::EventFeed,
};
use crate::{
    actors::{NodeId, SimTime},
    api::{
        http::error::ApiError,
        view::{Older, View},
    },
    protocol::Slot,
    scenario::run::on_current_thread,
    sim::{
        Live, LiveHandle, NetworkEvent, Observer, Pace, Past, Stage,
        past::{History, RunPoint, Walk, WalkError, WalkStep, Watchers},
        snapshots::Snapshots,
        world::Moment,
    },
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};
use tokio::sync::{Semaphore, oneshot};

/// The largest number of views of one process at a time. One more closes the view that has been idle longest.
pub const VIEWS_MAX: usize = 16;
/// The largest number of copies that are played at a time.
const AT_ONCE: usize = 2;
/// The path before the number of a view.
const PREFIX: &str = "/views/";

/// The observers of a network for its API.
pub struct NetworkObservers {
    /// The views of the served nodes.
    pub views: Vec<View>,
    pub board: LabBoard,
}

impl Watchers for NetworkObservers {
    fn apart(&self) -> Self {
        Self { views: self.views.iter().map(View::apart).collect(), board: self.board.apart() }
    }

    fn observers(&self) -> Vec<Box<dyn Observer>> {
        let mut observers: Vec<Box<dyn Observer>> = vec![Box::new(self.board.observer())];
        observers.extend(self.views.iter().map(|view| Box::new(view.clone()) as Box<dyn Observer>));
        observers
    }
}

/// The requested instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instant {
    /// The newest state at which the network's clock showed this.
    At(SimTime),
    /// A position within an instant: after this number of inputs was delivered to actors.
    Within { at: SimTime, delivered: u64, inputs: Option<usize> },
    /// The instant of a view.
    Of(u64),
    /// The network as it is now.
    Now,
}

/// The distance from that instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away {
    pub step: By,
    pub is_back: bool,
}

/// The unit of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Slot,
    Other(WalkStep),
}

/// The requested view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ViewWish {
    pub instant: Instant,
    pub away: Option<Away>,
    /// The node whose API the view has.
    pub node: NodeId,
}

/// A view that is open.
pub struct PastView<C> {
    /// The context from which its requests are answered.
    pub context: C,
    pub place: RunPoint,
    /// The number of times that the network had gone back to a snapshot when it was opened.
    pub reverts: u64,
}

/// All views of a process. Cheap to clone.
pub struct Views<C>(Arc<ViewRegistry<C>>);

impl<C> Clone for Views<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct ViewRegistry<C> {
    past: Past<NetworkObservers>,
    turn: Arc<Semaphore>,
    all: Mutex<All<C>>,
}

struct All<C> {
    last: u64,
    /// Counts requests, to find the view that has been idle longest.
    asked: u64,
    views: BTreeMap<u64, (u64, Arc<PastView<C>>)>,
}

/// A copy that has come to its instant, and waits there.
pub struct ArrivedCopy {
    pub live: LiveHandle,
    pub view: View,
    pub board: LabBoard,
    pub feed: EventFeed,
    pub place: RunPoint,
    /// The number of times that the network had gone back to a snapshot by then.
    pub reverts: u64,
}

impl<C: Running> Views<C> {
    /// Views of this past: none yet.
    pub fn new(past: Past<NetworkObservers>) -> Self {
        let all = Mutex::new(All { last: 0, asked: 0, views: BTreeMap::new() });
        Self(Arc::new(ViewRegistry { past, turn: Arc::new(Semaphore::new(AT_ONCE)), all }))
    }

    /// The past that they are of.
    pub fn past(&self) -> &Past<NetworkObservers> {
        &self.0.past
    }

    /// Makes a copy of the network that runs at `live`, at the requested instant. The network has `nodes` nodes.
    ///
    /// # Errors
    /// The network was never at that instant, or its past is not retained so far back.
    pub async fn come(&self, wish: ViewWish, live: &LiveHandle, nodes: usize) -> Result<ArrivedCopy, ApiError> {
        let from = match wish.instant {
            Instant::Of(id) => Some(self.get(id).ok_or(MISSING)?),
            _ => None,
        };
        // The permit comes first, so that a waiting caller does not hold a history.
        let permit = self.0.turn.clone().acquire_owned().await.expect("it is never closed");
        let past = self.0.past.clone();
        let history = live.look(move |stage| past.history(stage)).await?;
        let history = history.map_err(|why| ApiError::Internal(why.to_string()))?;
        if from.as_ref().is_some_and(|from| from.reverts != history.reverts) {
            let why = "the network has gone back to a snapshot since, and this view is not of its past any more";
            return Err(ApiError::Conflict(why.to_owned()));
        }
        check(&wish, &history)?;
        if wish.node.0 as usize >= nodes {
            let (found, last) = (wish.node.0, nodes.saturating_sub(1));
            return Err(ApiError::Unprocessable(format!("key 'node': found {found}, allowed is 0 to {last}")));
        }
        let (reverts, place) = (history.reverts, from.map(|from| from.place));
        on_thread(async move {
            let walk = walk(&history, &wish, place).await.map_err(refused)?;
            drop(permit);
            let place = walk.place();
            let (stage, observed) = walk.into_parts();
            Ok(arrived(stage, observed, wish.node, place, reverts))
        })
        .await
    }

    /// Stores a view and returns its number. One more than [`VIEWS_MAX`] closes the view that has been idle longest.
    pub fn keep(&self, view: PastView<C>) -> (u64, Arc<PastView<C>>) {
        let view = Arc::new(view);
        let mut all = self.lock();
        all.last += 1;
        all.asked += 1;
        let (id, asked) = (all.last, all.asked);
        all.views.insert(id, (asked, view.clone()));
        while all.views.len() > VIEWS_MAX {
            let longest = all.views.iter().min_by_key(|(_, (asked, _))| *asked).map(|(id, _)| *id);
            longest.and_then(|id| all.views.remove(&id)).iter().for_each(|(_, view)| view.context.end());
        }
        (id, view)
    }

    /// The view with a number. Notes that it is in use.
    pub fn get(&self, id: u64) -> Option<Arc<PastView<C>>> {
        let mut all = self.lock();
        all.asked += 1;
        let asked = all.asked;
        let (last, view) = all.views.get_mut(&id)?;
        *last = asked;
        Some(view.clone())
    }

    /// All, by number.
    pub fn list(&self) -> Vec<(u64, Arc<PastView<C>>)> {
        self.lock().views.iter().map(|(id, (_, view))| (*id, view.clone())).collect()
    }

    /// Closes a view. Returns true if there was one.
    pub fn delete(&self, id: u64) -> bool {
        let removed = self.lock().views.remove(&id);
        removed.iter().for_each(|(_, view)| view.context.end());
        removed.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, All<C>> {
        // A panic while it was locked leaves whole entries.
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a copy of the network that runs at `live`, at its present point, with its observers. The copy has a thread of its own.
///
/// # Errors
/// The network was stopped.
pub(crate) async fn copied(
    live: &LiveHandle,
    observed: NetworkObservers,
    node: NodeId,
    place: RunPoint,
) -> Result<ArrivedCopy, ApiError> {
    let look = |stage: &Stage| {
        let snapshots = Snapshots::after(stage.snapshots().plan(), stage.snapshots().inputs());
        stage.inline_moment().map(|moment| (moment, snapshots))
    };
    let (moment, snapshots): (Moment, Snapshots) = live.look(look).await?.expect("a view is on the inline stage");
    on_thread(async move {
        let stage = Stage::at(&moment, snapshots, observed.observers());
        Ok(arrived(stage, observed, node, place, 0))
    })
    .await
}

/// The error for a number that no view has.
pub(crate) const MISSING: ApiError = ApiError::NotFound("there is no view of this number; GET /lab/views lists all");

/// The error for a request that would change a view.
pub(crate) fn read_only() -> ApiError {
    ApiError::Conflict(
        "a view of the past can be read only; POST /lab/views/{id}/chain makes an isolated chain that goes on from there"
            .to_owned(),
    )
}

/// Checks that the instant can be in the past of the network.
fn check(wish: &ViewWish, history: &History<NetworkObservers>) -> Result<(), ApiError> {
    let first = history.kept.first().map_or(history.present, |kept| kept.place);
    let at = match wish.instant {
        Instant::At(at) | Instant::Within { at, .. } => at,
        Instant::Of(_) | Instant::Now => return Ok(()),
    };
    if at > history.present.at || at < first.at {
        let (found, from, to) = (at.micros(), first.at.micros(), history.present.at.micros());
        return Err(ApiError::Unprocessable(format!(
            "key 'at': found {found}, allowed is {from} to {to}, which is now"
        )));
    }
    match wish.instant {
        Instant::Within { delivered, .. } if delivered > history.present.delivered => {
            let (found, most) = (delivered, history.present.delivered);
            Err(ApiError::Unprocessable(format!("key 'delivered': found {found}, allowed is 0 to {most}")))
        }
        _ => Ok(()),
    }
}

async fn walk(
    history: &History<NetworkObservers>,
    wish: &ViewWish,
    from: Option<RunPoint>,
) -> Result<Walk<NetworkObservers>, WalkError> {
    let Some(away) = wish.away else {
        return match (wish.instant, from) {
            (Instant::At(at), _) => history.at(at).await,
            (Instant::Within { at, delivered, inputs }, _) => {
                history.to(place_of(history, at, delivered, inputs)).await
            }
            (_, Some(place)) => history.to(place).await,
            (_, None) => history.to(history.present).await,
        };
    };
    let from = match (wish.instant, from) {
        (Instant::At(at), _) => history.at(at).await?.place(),
        (Instant::Within { at, delivered, inputs }, _) => place_of(history, at, delivered, inputs),
        (_, Some(place)) => place,
        (_, None) => history.present,
    };
    match (away.step, away.is_back) {
        (By::Slot, is_back) => history.at(slot_beside(history, from.at, is_back)).await,
        (By::Other(step), true) => history.before_step(from, step).await,
        (By::Other(step), false) => history.after(from, step).await,
    }
}

/// The point within an instant. Without a number of inputs it is before the inputs that arrived at that point.
fn place_of(history: &History<NetworkObservers>, at: SimTime, delivered: u64, inputs: Option<usize>) -> RunPoint {
    let by_then = || history.count_while(|came| came.at <= at && came.delivered < delivered);
    RunPoint { at, delivered, inputs: inputs.unwrap_or_else(by_then).min(history.inputs.len()) }
}

/// The beginning of the next slot, or of the last slot that began before an instant. Both are limited to the retained past.
fn slot_beside(history: &History<NetworkObservers>, at: SimTime, is_back: bool) -> SimTime {
    let slots = history.plan.tree.slots();
    let start = |slot: u32| SimTime::from_seconds(slots.start(Slot(slot)));
    let running = slots.slot(at.seconds()).0;
    let first = history.kept.first().map_or(history.present, |kept| kept.place).at;
    let beside = match is_back {
        false => start(running.saturating_add(1)),
        true if start(running) < at => start(running),
        true => start(running.saturating_sub(1)),
    };
    beside.clamp(first, history.present.at)
}

fn refused(lost: WalkError) -> ApiError {
    match lost {
        WalkError::TooEarly { .. } | WalkError::NoSuchPoint { .. } => {
            ApiError::Unprocessable(format!("key 'at': {lost}"))
        }
        WalkError::Died(_) | WalkError::Unread(_) => ApiError::Internal(lost.to_string()),
    }
}

/// Makes a copy that has reached its point ready for requests.
fn arrived(
    stage: Stage,
    observed: NetworkObservers,
    node: NodeId,
    place: RunPoint,
    reverts: u64,
) -> (Live, ArrivedCopy) {
    let tree = stage.world().tree().clone();
    let feed = EventFeed::new(tree.slots(), stage.world().tips().of(node));
    let NetworkObservers { views, board } = observed;
    let is_watched = views.iter().find(|view| view.node() == node).cloned();
    let older = views.first().and_then(|view| view.head().chain().older_part());
    let view = is_watched.unwrap_or_else(|| view_of(&stage, node, older));
    let (mut live, handle) = Live::new(stage, tree.slots(), Pace::Manual);
    live.watch(Box::new(feed.observer()));
    (live, ArrivedCopy { live: handle, view, board, feed, place, reverts })
}

/// The current view of a node that had no observer.
fn view_of(stage: &Stage, node: NodeId, older: Option<Arc<dyn Older>>) -> View {
    let (world, plan) = (stage.world(), stage.snapshots().plan());
    let (tips, nodes) = (world.tips(), 0..plan.nodes.len() as u32);
    let view = View::with_older(node, plan.tree.clone(), tips.of(node).clone(), world.now(), older);
    let mut view = view.with_neighbours(nodes.clone().map(NodeId)).with_latencies(&plan.network());
    let pending = stage.inline_moment().map(|moment| moment.pending(node)).unwrap_or_default();
    for one in nodes.map(NodeId) {
        let tip = tips.of(one);
        let pending = (one == node).then_some(&*pending);
        view.observe_network(
            world.now(),
            &NetworkEvent::Moved { node: one, from: tip, to: tip, pending, begins: true },
        );
    }
    view
}

/// Makes a copy and serves its requests on a thread of its own.
async fn on_thread(
    make: impl Future<Output = Result<(Live, ArrivedCopy), ApiError>> + Send + 'static,
) -> Result<ArrivedCopy, ApiError> {
    let (tell, told) = oneshot::channel();
    let run = move || {
        on_current_thread(async move {
            let live = match make.await {
                Ok((live, come)) => {
                    if tell.send(Ok(come)).is_err() {
                        return;
                    }
                    live
                }
                Err(why) => {
                    // The client that waited for it has gone.
                    let _client_gone = tell.send(Err(why));
                    return;
                }
            };
            // Later requests get the error that the run has stopped.
            let _stopped = live.run().await;
        });
    };
    let started = thread::Builder::new().name("view".to_owned()).spawn(run);
    started.map_err(|why| ApiError::Internal(format!("no thread for a view: {why}")))?;
    told.await.map_err(|_| ApiError::Internal("the thread of a view has ended".to_owned()))?
}

/// Splits a path below `/views/` into the view's number, if it is a number, and the path within the view.
pub(crate) fn split(path: &str) -> Option<(Option<u64>, &str)> {
    split_below(PREFIX, path)
}

/// The path below which a view is found.
pub(crate) fn prefix(id: u64) -> String {
    format!("{PREFIX}{id}")
}
