//! What the world sees: the public HTTP API of one simulated node, as a warp server.
//!
//! ```text
//!   server ──► dispatch ──► route (table) ──► parameter, rule (tables) ──► handler ──► resource (tables) ──► page
//!   HTTP       path, HEAD,  who answers       what may be asked            what is     members, filters,     meta and
//!              301, CORS                                                   looked up   orders                links
//! ```
//!
//! A handler is a plain function over one [`Head`](view::Head), so every answer is of one chain; only submitting
//! transactions and steering the run wait for the simulation. What a route takes and what a resource shows stands in
//! tables, each row marked with the [`Dialect`]s it belongs to, so that a handler never asks which one is spoken.
//! Nothing below `api` knows HTTP, and nothing here changes the simulation but through
//! [`LiveHandle`](crate::sim::LiveHandle). Source: api.md.

mod access;
mod body;
pub mod chains;
pub mod context;
mod dispatch;
mod error;
mod field;
pub mod funds;
mod guard;
mod handler;
mod json;
pub mod lab;
mod like;
mod limits;
mod lists;
pub mod log;
mod memo;
mod metrics;
mod openapi;
mod page;
mod parameter;
mod query;
mod range;
mod reply;
mod request;
mod resource;
mod route;
mod rule;
mod server;
mod shape;
mod version;
pub mod view;
pub mod views;
pub mod webhooks;

pub use access::{Limiter, RateLimit, Whitelist};
pub use context::{ApiContext, Dialect, Ports, Recording, Settings, WriteState};
pub use dispatch::answer;
pub use error::ApiError;
pub use funds::Funds;
pub use guard::{LabAccess, LabToken};
pub use lab::{Chaos, EventFeed, LabBoard};
pub use limits::Limits;
pub use log::LogTail;
pub use reply::Reply;
pub use request::Request;
pub use server::{BindError, Listener, Server, answer_bytes};
pub use view::View;
pub use webhooks::{WebhookSettings, WebhookThread, Webhooks};
