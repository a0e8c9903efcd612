//! What webhooks of a kept testnet must not get: events from before they existed, after they were deleted and while they were
//! off, events of other chains, and an event twice.
//!
//! A model keeps the chain of the served node. What an action takes from it and adds to it is what happened.

use crate::{
    folders::{DataFolder, Receiver, kill, posted},
    testnet::Up,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::{collections::BTreeSet, thread};

const EVENTS: [&str; 2] = ["block.applied", "block.reverted"];

/// A webhook with a receiver of its own, and the ids of the blocks that it must be told of, in order.
struct Hook {
    id: String,
    receiver: Receiver,
    event: usize,
    enabled: bool,
    deleted: bool,
    gets: Vec<String>,
    /// Kills that may have come between a post and the note that it was made.
    cut_off: usize,
}

struct Course {
    place: DataFolder,
    random: ChaCha8Rng,
    /// Gone for a moment only, when it is killed.
    up: Option<Up>,
    hooks: Vec<Hook>,
    /// The ids of the blocks from height 1 on.
    chain: Vec<String>,
    snapshots: Vec<Value>,
}

impl Course {
    fn new(seed: u64) -> Self {
        let place = DataFolder::new();
        let up = Some(place.start(&["--pace", "manual"]));
        let random = ChaCha8Rng::seed_from_u64(seed);
        let mut course = Self { place, random, up, hooks: Vec::new(), chain: Vec::new(), snapshots: Vec::new() };
        course.follow();
        course
    }

    fn up(&self) -> &Up {
        self.up.as_ref().expect("it runs")
    }

    /// What has happened since the chain was last looked at goes to the webhooks that are on.
    fn follow(&mut self) {
        let blocks = self.up().get("/blocks?limit=100");
        let total = blocks["meta"]["totalCount"].as_u64().expect("a number") as usize;
        let ids = blocks["data"].as_array().expect("a list").iter().map(|block| block["id"].as_str().expect("an id"));
        let mut chain: Vec<String> = ids.map(str::to_owned).collect();
        chain.reverse();
        assert_eq!(chain.len(), total, "all on one page");
        let common = self.chain.iter().zip(&chain).take_while(|(was, is)| was == is).count();
        let happened = [&chain[common..], &self.chain[common..]];
        let reverted: Vec<String> = happened[1].iter().rev().cloned().collect();
        let happened = [happened[0].to_vec(), reverted];
        for hook in self.hooks.iter_mut().filter(|hook| hook.enabled && !hook.deleted) {
            hook.gets.extend(happened[hook.event].iter().cloned());
        }
        self.chain = chain;
    }

    fn create(&mut self, event: usize) {
        let receiver = Receiver::start();
        let hook = json!({"event": EVENTS[event], "target": receiver.url, "conditions": []});
        let id = posted(self.up(), "/api/webhooks", &hook)["id"].as_str().expect("an id").to_owned();
        let (gets, cut_off) = (Vec::new(), 0);
        self.hooks.push(Hook { id, receiver, event, enabled: true, deleted: false, gets, cut_off });
    }

    /// One of the webhooks that are there, if any is.
    fn some_hook(&mut self) -> Option<usize> {
        let live: Vec<usize> = (0..self.hooks.len()).filter(|hook| !self.hooks[*hook].deleted).collect();
        (!live.is_empty()).then(|| live[self.random.random_range(0..live.len())])
    }

    fn change(&mut self) {
        let Some(which) = self.some_hook() else { return };
        let hook = &mut self.hooks[which];
        let change = if self.random.random_bool(0.5) {
            hook.event = 1 - hook.event;
            json!({"event": EVENTS[hook.event]})
        } else {
            hook.enabled = !hook.enabled;
            json!({"enabled": hook.enabled})
        };
        let path = format!("/webhooks/{}", hook.id);
        assert_eq!(self.up().put(&path, &change).0, 204, "{path} {change}");
    }

    fn delete(&mut self) {
        // What waits goes with it, so nothing may.
        self.drain();
        let live = self.hooks.iter().filter(|hook| !hook.deleted).count();
        let Some(which) = self.some_hook().filter(|_| live > 2) else { return };
        assert_eq!(self.up().delete(&format!("/webhooks/{}", self.hooks[which].id)), 204);
        self.hooks[which].deleted = true;
    }

    /// Waits until nothing waits.
    fn drain(&self) {
        self.hooks.iter().for_each(|hook| hook.receiver.open(true));
        let lanes = || {
            let lab: Value = serde_json::from_slice(&self.up().bytes("/lab/webhooks")).expect("JSON");
            lab["data"]["webhooks"].as_array().expect("a list").clone()
        };
        while lanes().iter().any(|lane| lane["queued"] != 0) {
            thread::yield_now();
        }
    }

    fn move_on(&mut self) {
        let slots = self.random.random_range(1..5);
        self.up().advance(slots);
        self.follow();
    }

    fn go_back(&mut self) {
        if self.chain.len() > 4 && self.random.random_bool(0.5) {
            posted(self.up(), "/lab/reorg", &json!({"depth": 2, "transactions": "return"}));
        } else if self.snapshots.is_empty() || self.random.random_bool(0.4) {
            let made = posted(self.up(), "/lab/snapshots", &json!({}))["id"].clone();
            self.snapshots.push(made);
        } else {
            let snapshot = self.snapshots[self.random.random_range(0..self.snapshots.len())].clone();
            posted(self.up(), &format!("/lab/snapshots/{snapshot}/revert"), &json!({}));
        }
        self.follow();
    }

    /// A chain beside it, with the same blocks: they are none of the testnet's.
    fn play_beside(&self) {
        let chain = posted(self.up(), "/lab/chains", &json!({}))["id"].clone();
        posted(self.up(), &format!("/chains/{chain}/lab/advance"), &json!({"slots": self.chain.len() + 4}));
        assert_eq!(self.up().delete_below_root(&format!("/lab/chains/{chain}")), 204);
    }

    /// Ends the process in one of three ways, and starts it again.
    fn restart(&mut self) {
        match self.random.random_range(0..3) {
            0 => {
                self.drain();
                kill(self.up.take().expect("it runs"));
            }
            1 => {
                self.hooks.iter().for_each(|hook| hook.receiver.open(false));
                self.move_on();
                kill(self.up.take().expect("it runs"));
                self.hooks.iter_mut().for_each(|hook| hook.cut_off += 1);
            }
            _ => {
                self.hooks.iter().for_each(|hook| hook.receiver.open(true));
                drop(self.up.take().expect("it runs").interrupt());
            }
        }
        self.hooks.iter().for_each(|hook| hook.receiver.open(true));
        self.up = Some(self.place.start(&["--pace", "manual"]));
        self.follow();
    }

    fn check(&self) {
        for hook in &self.hooks {
            let (mut seen, mut told) = (BTreeSet::new(), Vec::new());
            let heard = hook.receiver.heard();
            for (id, body) in &heard {
                if seen.insert(id) {
                    told.push(body["data"]["id"].as_str().expect("an id").to_owned());
                }
            }
            assert_eq!(told, hook.gets, "{}: {}", hook.id, EVENTS[hook.event]);
            let again = heard.len() - told.len();
            assert!(again <= hook.cut_off, "{again} posts were made again after {} kills", hook.cut_off);
        }
    }
}

#[test]
fn a_webhook_hears_of_what_happens_while_it_is_there_and_of_each_event_once() {
    let mut deleted = 0;
    for seed in [1, 2] {
        let mut course = Course::new(seed);
        course.move_on();
        [0, 1, 0].into_iter().for_each(|event| course.create(event));
        for step in 0..28 {
            match course.random.random_range(0..12) {
                0..4 => course.move_on(),
                4 => course.create(step % 2),
                5 => course.change(),
                6 => course.delete(),
                7 | 8 => course.go_back(),
                9 if step % 2 == 0 => course.play_beside(),
                _ => course.restart(),
            }
        }
        course.restart();
        course.drain();
        course.check();
        let told: usize = course.hooks.iter().map(|hook| hook.gets.len()).sum();
        assert!(told > 20, "something was seen: {told}");
        deleted += course.hooks.iter().filter(|hook| hook.deleted).count();
        drop(course.up.take().expect("it runs").interrupt());
        course.check();
    }
    assert!(deleted > 0, "or nothing ended");
}
