//! The public HTTP API of one simulated node, as a warp server.
//!
//! ```text
//!   server ──► dispatch ──► handler::routes ──► table::parameter, rule ──► handler ──► resource (tables) ──► table::page
//!   HTTP       path, HEAD,  who answers         what may be asked          what is     members, filters,     meta and
//!              301, CORS                                                   looked up   orders                links
//! ```
//!
//! A handler is a plain function over one `Head`, so every answer is of one chain. Only submitting
//! transactions and steering the run wait for the simulation. Tables hold the parameters of routes and the members of
//! resources. Each row names the [`Dialect`]s it belongs to, so a handler never asks which one is spoken. Nothing below
//! `api` knows HTTP, and only [`LiveHandle`](crate::sim::LiveHandle) changes the simulation from here. Source: api.md.

pub(crate) mod context;
mod dispatch;
mod handler;
mod http;
pub(crate) mod lab;
mod resource;
mod server;
mod table;
pub(crate) mod view;
pub mod webhooks;

pub use context::{ApiContext, Recording, Settings, WriteState};
pub use dispatch::answer;
pub use http::{
    access::{RateLimit, Whitelist},
    error::ApiError,
    guard::{LabAccess, LabToken},
    limits::Limits,
    log::LogTail,
    proxy::{self, Proxies},
    reply::Reply,
    request::{Ports, Request},
};
pub use lab::{Chaos, EventFeed, LabBoard, Submissions, faucet::PublicFaucet, funds::Funds};
pub use server::{Listener, Server, answer_bytes};
pub use table::dialect::Dialect;
pub use view::{Older, Shelf, ShelfOpening, View};
pub use webhooks::{WebhookHosts, WebhookSettings, WebhookThread, Webhooks};

/// Views of the past, each answered from a context of its own.
pub mod views {
    pub use super::{
        context::Views,
        lab::views::{NetworkObservers, VIEWS_MAX},
    };
}

/// Isolated chains, each answered from a context of its own.
pub mod chains {
    pub use super::{
        context::{Chain, Chains},
        lab::chains::{ChainAccount, ChainWish},
    };
}
