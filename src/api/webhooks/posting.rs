//! One post on its way, and the shared outbox that records its end.

use super::outbox::{Outbox, PostNumber};
use crate::{actors::webhook::Delivery, api::http::log::Report, files::segments::LogError};
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a post's id.
const ID_BYTES: usize = 16;

/// A node's outbox, if its webhooks are stored. Clones share it. The node's log reports a failed write. The testnet's own log fails in
/// that case, too.
#[derive(Clone)]
pub(crate) struct SharedOutbox {
    outbox: Option<Arc<Mutex<Outbox>>>,
    report: Report,
}

impl SharedOutbox {
    /// Shares an outbox.
    pub fn new(outbox: Option<Outbox>, report: Report) -> Self {
        Self { outbox: outbox.map(|outbox| Arc::new(Mutex::new(outbox))), report }
    }

    /// Records the posts of an event.
    pub fn fired(&self, event: u64, deliveries: &[Delivery]) {
        self.told(|outbox| outbox.fired(event, deliveries));
    }

    /// Records that webhooks have heard all events up to this one.
    pub fn hears(&self, event: u64) {
        self.told(|outbox| outbox.hears(event));
    }

    /// Records that a post is finished.
    pub fn done(&self, number: PostNumber) {
        self.told(|outbox| outbox.done(number));
    }

    /// Records that all posts of a webhook are finished.
    pub fn forget(&self, hook: &str) {
        self.told(|outbox| outbox.forget(hook));
    }

    /// [`SharedOutbox::hears`], and waits for the disk.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn settle(&self, event: u64) -> Result<(), LogError> {
        self.locked().map_or(Ok(()), |mut outbox| outbox.settle(event))
    }

    fn told(&self, tell: impl FnOnce(&mut Outbox) -> Result<(), LogError>) {
        if let Some(Err(why)) = self.locked().map(|mut outbox| tell(&mut outbox)) {
            (self.report)(&format!("A webhook's post cannot be kept: {why}"));
        }
    }

    /// Locks the outbox. A poisoned lock does no harm, because each write is complete.
    fn locked(&self) -> Option<MutexGuard<'_, Outbox>> {
        self.outbox.as_ref().map(|outbox| outbox.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A delivery that is to be posted.
#[derive(Clone)]
pub(crate) struct Posting {
    pub delivery: Delivery,
    /// The id in hex. A repeated post has the same id, and no other post has it.
    pub id: Arc<str>,
    /// Its number in the outbox, if it is stored there.
    number: Option<PostNumber>,
    outbox: SharedOutbox,
}

impl Posting {
    /// A posting that is in the outbox.
    pub fn new(delivery: Delivery, number: PostNumber, outbox: &SharedOutbox) -> Self {
        let id = id(&delivery, number);
        Self { delivery, id, number: Some(number), outbox: outbox.clone() }
    }

    /// A posting that is not in the outbox, made after the event of this number.
    pub fn unkept(delivery: Delivery, event: u64, outbox: &SharedOutbox) -> Self {
        let id = id(&delivery, PostNumber { event, post: u32::MAX });
        Self { delivery, id, number: None, outbox: outbox.clone() }
    }

    /// Notes that the post was accepted, refused, dropped or lost on purpose, and is not repeated.
    pub fn over(&self) {
        if let Some(number) = self.number {
            self.outbox.done(number);
        }
    }
}

/// The id of a post: a hash of the event's number, the webhook and the body. With the body in it, another event has another id, even
/// if a crash of the machine lost the end of the chain and later events get the same numbers again.
fn id(Delivery { hook, body, .. }: &Delivery, PostNumber { event, post }: PostNumber) -> Arc<str> {
    let digest = Sha256::new()
        .chain_update(event.to_le_bytes())
        .chain_update(post.to_le_bytes())
        .chain_update(hook.id.as_bytes())
        .chain_update(body)
        .finalize();
    hex::encode(&digest[..ID_BYTES]).into()
}
