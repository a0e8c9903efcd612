//! Who answers: plain functions from a checked request and one head to an answer.

pub mod blocks;
pub mod businesses;
pub mod chains;
pub mod chaos;
pub mod delegates;
pub mod docs;
pub mod faults;
pub mod fees;
pub mod forks;
pub mod home;
pub mod lab;
pub mod locks;
pub mod metrics;
pub mod node;
pub mod peers;
pub mod recording;
pub mod reorg;
pub mod snapshots;
pub mod submit;
pub mod transactions;
pub mod types;
pub mod views;
pub mod votes;
pub mod wallets;
pub mod watch;
pub mod webhooks;

use super::{
    ApiContext, Reply, Request, json,
    page::{Listing, Page},
    parameter::Parameters,
    resource::Frame,
    route::Route,
    view::Head,
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A request that has passed all checks of its route.
pub struct Call<'c> {
    pub context: &'c ApiContext,
    pub request: &'c Request,
    /// The one head the answer is read from.
    pub head: Arc<Head>,
    pub route: &'static Route,
    /// Without version.
    pub path: &'c str,
    /// Of the path.
    pub arguments: Parameters,
    /// As sent, for links.
    pub query: Map<String, Value>,
    pub parameters: Parameters,
    /// Null where the route reads none.
    pub body: Value,
}

impl Call<'_> {
    /// What the answer is seen from.
    pub fn frame(&self) -> Frame<'_> {
        Frame { view: &self.context.view, head: &self.head, dialect: self.context.settings.dialect }
    }

    /// The text of a path's argument.
    pub fn argument(&self, name: &str) -> &str {
        self.arguments.text(name).unwrap_or_default()
    }

    /// The page asked for.
    pub fn page(&self) -> Page {
        Page::of(&self.parameters)
    }

    /// One page of a list.
    pub fn list<T>(&self, listing: Listing<T>, write: impl Fn(&mut Vec<u8>, &T, &Frame<'_>)) -> Reply {
        let path = self.path.strip_prefix("/api").unwrap_or(self.path);
        let frame = self.frame();
        let link = (path, &self.query, self.route.has_transform());
        Reply::json(listing.write(self.page(), link, |out, row| write(out, &row, &frame)))
    }

    /// One resource.
    pub fn show(&self, write: impl FnOnce(&mut Vec<u8>, &Frame<'_>)) -> Reply {
        Reply::json(json::data(|out| write(out, &self.frame())))
    }
}
