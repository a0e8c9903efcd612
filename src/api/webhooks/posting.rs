//! One post on its way, and the outbox that it is struck off when it is over.

use super::outbox::{Outbox, PostNumber};
use crate::{actors::webhook::Delivery, api::http::log::Report, files::segments::LogError};
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a post's id.
const ID_BYTES: usize = 16;

/// A node's outbox, if its webhooks are kept. Clones share it. The node's log reports a failed write. The testnet's own log fails then,
/// too.
#[derive(Clone)]
pub struct SharedOutbox {
    outbox: Option<Arc<Mutex<Outbox>>>,
    report: Report,
}

impl SharedOutbox {
    /// Shares an outbox.
    pub fn new(outbox: Option<Outbox>, report: Report) -> Self {
        Self { outbox: outbox.map(|outbox| Arc::new(Mutex::new(outbox))), report }
    }

    /// Writes down what an event fired.
    pub fn fired(&self, event: u64, deliveries: &[Delivery]) {
        self.told(|outbox| outbox.fired(event, deliveries));
    }

    /// Writes down that all events up to this one were heard of.
    pub fn hears(&self, event: u64) {
        self.told(|outbox| outbox.hears(event));
    }

    /// Writes down that a post is over.
    pub fn done(&self, number: PostNumber) {
        self.told(|outbox| outbox.done(number));
    }

    /// Writes down that all posts of a webhook are over.
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

    /// Each write is whole before a panic elsewhere.
    fn locked(&self) -> Option<MutexGuard<'_, Outbox>> {
        self.outbox.as_ref().map(|outbox| outbox.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A delivery that is to be posted.
#[derive(Clone)]
pub struct Posting {
    pub delivery: Delivery,
    /// The same if it is posted again, and no other post's: hexadecimal.
    pub id: Arc<str>,
    /// Its place in the outbox.
    number: Option<PostNumber>,
    outbox: SharedOutbox,
}

impl Posting {
    /// One that is in the outbox.
    pub fn new(delivery: Delivery, number: PostNumber, outbox: &SharedOutbox) -> Self {
        let id = id(&delivery, number);
        Self { delivery, id, number: Some(number), outbox: outbox.clone() }
    }

    /// One that is not, made after an event of this number.
    pub fn unkept(delivery: Delivery, event: u64, outbox: &SharedOutbox) -> Self {
        let id = id(&delivery, PostNumber { event, post: u32::MAX });
        Self { delivery, id, number: None, outbox: outbox.clone() }
    }

    /// It was taken, refused, dropped or lost on purpose, and is not posted again.
    pub fn over(&self) {
        if let Some(number) = self.number {
            self.outbox.done(number);
        }
    }
}

/// By the event's number, the webhook and the body: another event has another, even if a machine's crash has taken the end of
/// the chain, and events after it get numbers that were given before.
fn id(Delivery { hook, body, .. }: &Delivery, PostNumber { event, post }: PostNumber) -> Arc<str> {
    let digest = Sha256::new()
        .chain_update(event.to_le_bytes())
        .chain_update(post.to_le_bytes())
        .chain_update(hook.id.as_bytes())
        .chain_update(body)
        .finalize();
    hex::encode(&digest[..ID_BYTES]).into()
}
