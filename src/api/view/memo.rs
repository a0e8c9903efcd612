//! A cache of answers that depend on the chain alone, so that a popular answer is computed once for each block.

use crate::api::http::reply::Reply;
use dashmap::DashMap;
use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

/// The number of bytes that the cache of one head holds. Later answers are computed each time.
const BYTES_MAX: usize = 64 << 20;
/// The largest length of a cached address [bytes]. A longer one is unlikely to be requested twice.
const ADDRESS_MAX: usize = 512;

/// The answers given on one head, by path and query.
#[derive(Debug, Default)]
pub struct Memo {
    /// The map, allocated with the first answer: most heads of a fast run never receive a request.
    answers: OnceLock<DashMap<Box<str>, Reply>>,
    bytes: AtomicUsize,
}

impl Memo {
    /// The cached answer to a path and query.
    pub fn get(&self, target: &str) -> Option<Reply> {
        Some(self.answers.get()?.get(target)?.clone())
    }

    /// Caches an answer, if there is room. The returned answer shares its parts with the cached one.
    pub fn keep(&self, target: &str, reply: Reply) -> Reply {
        let size = target.len() + reply.body.len();
        let has_room = target.len() <= ADDRESS_MAX && self.bytes.fetch_add(size, Ordering::Relaxed) + size <= BYTES_MAX;
        if !has_room {
            return reply;
        }
        let reply = reply.shared();
        self.answers.get_or_init(DashMap::new).insert(target.into(), reply.clone());
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_not_kept() {
        let memo = Memo::default();
        let short = Reply::json("{}");
        assert_eq!(memo.keep("/a", short.clone()).body, short.body);
        assert_eq!(memo.get("/a").map(|reply| reply.body), Some(short.body.clone()));
        memo.keep(&"x".repeat(ADDRESS_MAX + 1), short.clone());
        assert!(memo.get(&"x".repeat(ADDRESS_MAX + 1)).is_none() && memo.get("/b").is_none());
        memo.keep("/long", Reply::json(vec![b' '; BYTES_MAX]));
        assert!(memo.get("/long").is_none());
    }
}
