//! Unfinished posts on disk: after a kill, the next start of the process makes them.
//!
//! ```text
//!   webhooks-node-0/posts-3/00000001.log
//!     {"due": event 17, bodies, hooks}    an event fired, written before anything is posted
//!     {"done": event 17, post 0}          that post is over: taken, refused, dropped or lost on purpose
//!     {"heard": 1024}                     events up to this one fired nothing more
//! ```
//!
//! Events of a node are numbered from the start of its chain ([`EventNumbers`]), and each replay gives the same numbers. So the
//! events above the last recorded number are those that no webhook received before a kill. The replay fires them
//! ([`super::Rehearing`]). Every event reaches its webhooks at least once.
//!
//! A log that has grown is replaced by a new one in the next folder. The new log begins with the waiting posts, followed by the
//! number of the last heard event. Without that line the new log was incomplete when the process ended, and the one before
//! counts.

use crate::{
    actors::webhook::Delivery,
    files::segments::{self, Log, LogError, Records},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, VecDeque},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The size at which a log is replaced [bytes], unless twice its initial size is more.
const GROWN: u64 = 8 << 20;
/// The number of events without a post after which the outbox stores their number.
const SILENT_MAX: u64 = 1_024;

/// One post of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostNumber {
    /// The event's number.
    pub event: u64,
    /// The place among the posts of the event.
    pub post: u32,
}

/// A webhook's id and the body.
type Post = (String, Arc<[u8]>);

/// A post that was not over when the process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub number: PostNumber,
    /// The webhook's id.
    pub hook: String,
    pub body: Arc<[u8]>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Record {
    Due(Due),
    Done(PostNumber),
    Heard(u64),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Due {
    event: u64,
    /// Each body once, however many webhooks get it.
    bodies: Vec<String>,
    /// The webhook's id and the body's index for each post.
    posts: Vec<(String, usize)>,
}

impl Due {
    /// The record of an event's posts in their order, each with its webhook's id.
    fn new<'p>(event: u64, posts: impl Iterator<Item = (&'p String, &'p Arc<[u8]>)>) -> Self {
        let mut due = Self { event, bodies: Vec::new(), posts: Vec::new() };
        let mut last: Option<&Arc<[u8]>> = None;
        for (hook, body) in posts {
            if !last.is_some_and(|last| Arc::ptr_eq(last, body)) {
                due.bodies.push(String::from_utf8_lossy(body).into_owned());
                last = Some(body);
            }
            due.posts.push((hook.clone(), due.bodies.len() - 1));
        }
        due
    }
}

/// The posts of one node's webhooks that are not over.
#[derive(Debug)]
pub struct Outbox {
    folder: PathBuf,
    /// The number of the log's folder.
    generation: u64,
    log: Log,
    written: u64,
    /// The initial size of the log [bytes].
    begun_with: u64,
    /// Records that could not be written, oldest first. They are written before any other record: otherwise their events would
    /// count as heard.
    unwritten: VecDeque<Vec<u8>>,
    /// The unfinished posts, each with its webhook's id and its body.
    waiting: BTreeMap<PostNumber, Post>,
    heard: u64,
}

impl Outbox {
    /// Opens the outbox in a folder. Returns it with the unfinished posts, oldest first. Cuts off a record that was being
    /// written when the process ended.
    ///
    /// # Errors
    /// A log cannot be read or written, or is damaged.
    pub fn open(folder: &Path) -> Result<(Self, Vec<Waiting>), LogError> {
        let generations = generations(folder)?;
        for generation in generations.iter().rev() {
            let path = log_folder(folder, *generation);
            if let Some(found) = read(folder, &path, *generation)? {
                remove_others(folder, &generations, *generation)?;
                return Ok(found);
            }
        }
        let generation = generations.last().map_or(1, |last| last + 1);
        let outbox = Self::begin(folder, generation, BTreeMap::new(), 0)?;
        remove_others(folder, &generations, generation)?;
        Ok((outbox, Vec::new()))
    }

    /// Begins a log with the waiting posts.
    fn begin(
        folder: &Path,
        generation: u64,
        waiting: BTreeMap<PostNumber, Post>,
        heard: u64,
    ) -> Result<Self, LogError> {
        let log = Log::create(&log_folder(folder, generation))?;
        let (folder, unwritten) = (folder.to_owned(), VecDeque::new());
        let mut outbox = Self { folder, generation, log, written: 0, begun_with: 0, unwritten, waiting, heard };
        let mut events: BTreeMap<u64, BTreeMap<u32, Post>> = BTreeMap::new();
        let nobody = String::new();
        for (number, post) in &outbox.waiting {
            events.entry(number.event).or_default().insert(number.post, post.clone());
        }
        for (event, posts) in events {
            // A post's number is its position, so empty posts fill the positions of finished ones.
            let (mut all, mut body) = (Vec::new(), posts.values().next().map(|(_, body)| body).expect("some wait"));
            for post in 0..=posts.keys().last().copied().unwrap_or_default() {
                let hook = posts.get(&post).map_or(&nobody, |(hook, of)| {
                    body = of;
                    hook
                });
                all.push((hook, body));
            }
            outbox.append(&Record::Due(Due::new(event, all.into_iter())))?;
        }
        outbox.append(&Record::Heard(heard))?;
        outbox.log.sync()?;
        outbox.begun_with = outbox.written;
        Ok(outbox)
    }

    /// Replaces the log if it has grown. Otherwise a post that waits for long would retain all records after it.
    fn renew(&mut self) -> Result<(), LogError> {
        if self.written <= GROWN.max(2 * self.begun_with) {
            return Ok(());
        }
        let [old, new] = [self.generation, self.generation + 1].map(|generation| log_folder(&self.folder, generation));
        // The remains of an earlier attempt that failed for lack of disk space.
        remove(&new)?;
        match Self::begin(&self.folder, self.generation + 1, self.waiting.clone(), self.heard) {
            Ok(next) => *self = next,
            // The disk has no space for it. This log has all records, and a later call tries again.
            Err(_) => {
                self.begun_with = self.written;
                return remove(&new);
            }
        }
        remove(&old)
    }

    /// The number of the last event whose posts are known.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    /// Records the posts of an event before they are sent. Most events without a post need no record.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn fired(&mut self, event: u64, deliveries: &[Delivery]) -> Result<(), LogError> {
        if deliveries.is_empty() {
            return if event >= self.heard + SILENT_MAX { self.hears(event) } else { Ok(()) };
        }
        let posts = deliveries.iter().map(|Delivery { hook, body, .. }| (&hook.id, body));
        let due = Record::Due(Due::new(event, posts.clone()));
        let posts =
            (0..).zip(posts).map(|(post, (hook, body))| (PostNumber { event, post }, (hook.clone(), body.clone())));
        self.waiting.extend(posts);
        self.heard = self.heard.max(event);
        self.append(&due)
    }

    /// Records that a post is finished.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn done(&mut self, number: PostNumber) -> Result<(), LogError> {
        if self.waiting.remove(&number).is_none() {
            return Ok(());
        }
        self.append(&Record::Done(number))?;
        self.renew()
    }

    /// Records that all posts of a deleted webhook are finished.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn forget(&mut self, hook: &str) -> Result<(), LogError> {
        let of_hook: Vec<_> =
            self.waiting.iter().filter(|(_, (of, _))| of == hook).map(|(number, _)| *number).collect();
        of_hook.into_iter().map(|number| self.done(number)).fold(Ok(()), Result::and)
    }

    /// Records that webhooks have heard all events up to this one, and syncs to disk. A webhook that is created or changed now
    /// hears only later events.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn settle(&mut self, event: u64) -> Result<(), LogError> {
        self.hears(event)?;
        self.flush()?;
        self.log.sync()
    }

    /// Records that webhooks have heard all events up to this one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn hears(&mut self, event: u64) -> Result<(), LogError> {
        if event <= self.heard {
            return Ok(());
        }
        self.append(&Record::Heard(event))?;
        self.heard = event;
        self.renew()
    }

    fn append(&mut self, record: &Record) -> Result<(), LogError> {
        self.unwritten.push_back(serde_json::to_vec(record).expect("texts and numbers become JSON"));
        self.flush()
    }

    fn flush(&mut self) -> Result<(), LogError> {
        while let Some(oldest) = self.unwritten.front() {
            let spot = self.log.append(oldest)?;
            self.unwritten.pop_front();
            self.written += spot.end() - spot.at;
        }
        Ok(())
    }
}

/// Reads a log. `None` if its beginning is incomplete: it does not record the last heard event.
fn read(folder: &Path, path: &Path, generation: u64) -> Result<Option<(Outbox, Vec<Waiting>)>, LogError> {
    let Some(mut records) = Records::open(path)? else { return Ok(None) };
    let (mut found, mut heard, mut is_whole, mut written) = (BTreeMap::new(), 0, false, 0);
    loop {
        let (file, at) = records.place();
        let Some(record) = records.next_record()? else { break };
        written += records.spot().map_or(0, |spot| spot.end() - spot.at);
        let wrong = |why: String| LogError::Damaged { file: file.clone(), at, why };
        match serde_json::from_slice(&record).map_err(|why| wrong(why.to_string()))? {
            Record::Heard(event) => (heard, is_whole) = (heard.max(event), true),
            Record::Done(number) => _ = found.remove(&number),
            Record::Due(Due { event, bodies, posts }) => {
                let bodies: Vec<Arc<[u8]>> = bodies.into_iter().map(|body| body.into_bytes().into()).collect();
                for (post, (hook, body)) in (0..).zip(posts).filter(|(_, (hook, _))| !hook.is_empty()) {
                    let number = PostNumber { event, post };
                    let missing = || wrong(format!("a post has body {body}, of {}", bodies.len()));
                    let body = bodies.get(body).ok_or_else(missing)?.clone();
                    found.insert(number, Waiting { number, hook, body });
                }
                heard = heard.max(event);
            }
        }
    }
    if !is_whole {
        return Ok(None);
    }
    let (log, _torn) = records.into_log()?;
    let post = |(number, Waiting { hook, body, .. }): (&PostNumber, &Waiting)| (*number, (hook.clone(), body.clone()));
    let waiting = found.iter().map(post).collect();
    let outbox = Outbox {
        folder: folder.to_owned(),
        generation,
        log,
        written,
        begun_with: 0,
        unwritten: VecDeque::new(),
        waiting,
        heard,
    };
    Ok(Some((outbox, found.into_values().collect())))
}

fn log_folder(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("posts-{generation}"))
}

/// The numbers of the logs in a folder, ascending.
fn generations(folder: &Path) -> Result<Vec<u64>, LogError> {
    let io = |source| LogError::Io { file: folder.to_owned(), source };
    let mut generations = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        generations.extend(name.to_str().and_then(|name| name.strip_prefix("posts-")?.parse::<u64>().ok()));
    }
    generations.sort_unstable();
    Ok(generations)
}

fn remove_others(folder: &Path, generations: &[u64], kept: u64) -> Result<(), LogError> {
    let mut others = generations.iter().filter(|generation| **generation != kept);
    others.try_for_each(|generation| remove(&log_folder(folder, *generation)))
}

fn remove(path: &Path) -> Result<(), LogError> {
    segments::remove(path)?;
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(LogError::Io { file: path.to_owned(), source }),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::webhook::Webhook;

    fn delivery(hook: &str, body: &Arc<[u8]>) -> Delivery {
        let (id, event, target) = (hook.to_owned(), "block.applied".into(), "http://127.0.0.1:1/".to_owned());
        let secret = "s".repeat(32);
        let hook = Arc::new(Webhook { id, event, target, secret, enabled: true, conditions: Vec::new() });
        Delivery::again(hook, body.clone())
    }

    fn body(text: &str) -> Arc<[u8]> {
        text.as_bytes().into()
    }

    fn shown(waiting: &[Waiting]) -> Vec<String> {
        let one = |Waiting { number, hook, body }: &Waiting| {
            format!("{}.{} {hook} {}", number.event, number.post, String::from_utf8_lossy(body))
        };
        waiting.iter().map(one).collect()
    }

    fn number(event: u64, post: u32) -> PostNumber {
        PostNumber { event, post }
    }

    #[test]
    fn what_is_not_over_is_there_again_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (mut outbox, waiting) = Outbox::open(folder.path()).unwrap();
        assert_eq!((outbox.heard(), waiting), (0, Vec::new()));
        let (one, two) = (body("{\"one\":1}"), body("{\"two\":2}"));
        outbox.fired(9, &[delivery("a", &one), delivery("b", &one), delivery("a", &two)]).unwrap();
        outbox.fired(12, &[delivery("b", &two)]).unwrap();
        outbox.fired(13, &[]).unwrap();
        outbox.done(number(9, 1)).unwrap();
        outbox.done(number(9, 1)).unwrap();
        drop(outbox);
        let (mut outbox, waiting) = Outbox::open(folder.path()).unwrap();
        let left = ["9.0 a {\"one\":1}", "9.2 a {\"two\":2}", "12.0 b {\"two\":2}"];
        assert_eq!((outbox.heard(), shown(&waiting)), (12, left.map(String::from).to_vec()));
        outbox.settle(40).unwrap();
        for number in [number(9, 0), number(9, 2), number(12, 0)] {
            outbox.done(number).unwrap();
        }
        let (outbox, waiting) = Outbox::open(folder.path()).unwrap();
        assert_eq!((outbox.heard(), waiting), (40, Vec::new()));
    }

    #[test]
    fn events_that_fire_nothing_are_written_down_now_and_then() {
        let folder = tempfile::tempdir().unwrap();
        let (mut outbox, _) = Outbox::open(folder.path()).unwrap();
        (1..=3_000).for_each(|event| outbox.fired(event, &[]).unwrap());
        assert_eq!(Outbox::open(folder.path()).unwrap().0.heard(), 2_048);
    }

    /// However it is cut short, what is read is a beginning of what was written, and the rest is cut off.
    #[test]
    fn a_torn_log_gives_what_was_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (mut outbox, _) = Outbox::open(folder.path()).unwrap();
        (1..=20).for_each(|event| outbox.fired(event, &[delivery("a", &body("{}"))]).unwrap());
        let file = folder.path().join("posts-1/00000001.log");
        let whole = fs::read(&file).unwrap();
        for kept in 0..whole.len() {
            fs::write(&file, &whole[..kept]).unwrap();
            let (outbox, waiting) = Outbox::open(folder.path()).unwrap();
            let events: Vec<u64> = waiting.iter().map(|waiting| waiting.number.event).collect();
            assert_eq!(events, (1..=outbox.heard()).collect::<Vec<_>>(), "{kept} bytes");
            for other in generations(folder.path()).unwrap() {
                remove(&log_folder(folder.path(), other)).unwrap();
            }
            fs::create_dir(folder.path().join("posts-1")).unwrap();
        }
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 1;
        fs::write(&file, changed).unwrap();
        let why = Outbox::open(folder.path()).unwrap_err().to_string();
        assert!(why.contains("00000001.log: is damaged at byte"), "{why}");
    }

    #[test]
    fn a_log_that_has_grown_is_begun_anew_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let (mut outbox, _) = Outbox::open(folder.path()).unwrap();
        let long = body(&"x".repeat(1 << 20));
        for event in 1..=9 {
            outbox.fired(event, &[delivery("a", &long)]).unwrap();
            outbox.done(number(event, 0)).unwrap();
        }
        assert_eq!(generations(folder.path()).unwrap(), [2]);
        outbox.fired(10, &[delivery("a", &body("{}"))]).unwrap();
        // Killed between beginning the new log and removing the old one.
        fs::create_dir(folder.path().join("posts-1")).unwrap();
        // Killed before the first record of a new log was whole.
        fs::create_dir(folder.path().join("posts-3")).unwrap();
        let (outbox, waiting) = Outbox::open(folder.path()).unwrap();
        assert_eq!((outbox.heard(), shown(&waiting)), (10, vec!["10.0 a {}".to_owned()]));
        assert_eq!(generations(folder.path()).unwrap(), [2]);
    }

    /// A webhook that is deleted takes its posts with it: the log does not wait for them for ever.
    #[test]
    fn posts_of_a_deleted_webhook_hold_up_no_log() {
        let folder = tempfile::tempdir().unwrap();
        let (mut outbox, _) = Outbox::open(folder.path()).unwrap();
        let long = body(&"x".repeat(1 << 20));
        outbox.fired(1, &[delivery("a", &long), delivery("b", &long)]).unwrap();
        drop(outbox);
        let (mut outbox, _) = Outbox::open(folder.path()).unwrap();
        for event in 2..=9 {
            outbox.fired(event, &[delivery("a", &long), delivery("b", &long)]).unwrap();
            outbox.done(number(event, 1)).unwrap();
        }
        outbox.done(number(1, 1)).unwrap();
        outbox.forget("b").unwrap();
        assert_eq!(outbox.waiting.len(), 9, "those of another webhook");
        outbox.forget("a").unwrap();
        assert_eq!(Outbox::open(folder.path()).unwrap().1, []);
    }

    /// A receiver that is away for long keeps its own posts, and not those of all others.
    #[test]
    fn posts_that_wait_go_along_when_a_log_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (mut outbox, _) = Outbox::open(folder.path()).unwrap();
        let (long, other) = (body(&"x".repeat(1 << 20)), body("{\"other\":1}"));
        outbox.fired(7, &[delivery("a", &other), delivery("b", &long), delivery("c", &other)]).unwrap();
        outbox.done(number(7, 1)).unwrap();
        let waits = ["7.0 a {\"other\":1}", "7.2 c {\"other\":1}"].map(String::from);
        let size = || {
            let logs = generations(folder.path()).unwrap().into_iter().map(|one| log_folder(folder.path(), one));
            let files =
                logs.flat_map(|log| fs::read_dir(log).unwrap().map(|file| file.unwrap().metadata().unwrap().len()));
            files.sum::<u64>()
        };
        for event in 8..60 {
            outbox.fired(event, &[delivery("b", &long)]).unwrap();
            outbox.done(number(event, 0)).unwrap();
            assert!(size() <= GROWN + (2 << 20), "event {event}: {} bytes", size());
        }
        let generation = generations(folder.path()).unwrap();
        assert!(generation.len() == 1 && generation[0] > 4, "{generation:?}");
        let (mut outbox, waiting) = Outbox::open(folder.path()).unwrap();
        assert_eq!((outbox.heard(), shown(&waiting)), (59, waits.to_vec()));
        // Killed at each byte of the log that is begun anew: the one before counts, as long as it is there.
        let old = outbox.generation;
        let copy = |from: u64, to: &Path| {
            fs::create_dir_all(to).unwrap();
            fs::copy(log_folder(folder.path(), from).join("00000001.log"), to.join("00000001.log")).unwrap();
        };
        let (before, after) = (folder.path().join("before"), folder.path().join("after"));
        copy(old, &before);
        outbox.written = u64::MAX;
        outbox.renew().unwrap();
        copy(old + 1, &after);
        drop(outbox);
        let whole = fs::read(after.join("00000001.log")).unwrap();
        for kept in 0..=whole.len() {
            remove(&log_folder(folder.path(), old + 1)).unwrap();
            fs::create_dir_all(log_folder(folder.path(), old)).unwrap();
            fs::copy(before.join("00000001.log"), log_folder(folder.path(), old).join("00000001.log")).unwrap();
            fs::create_dir(log_folder(folder.path(), old + 1)).unwrap();
            fs::write(log_folder(folder.path(), old + 1).join("00000001.log"), &whole[..kept]).unwrap();
            let (outbox, waiting) = Outbox::open(folder.path()).unwrap();
            assert_eq!((outbox.heard(), shown(&waiting)), (59, waits.to_vec()), "{kept} bytes");
        }
    }
}
