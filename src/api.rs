//! What the world sees: the public HTTP API of one simulated node.
pub mod view;

pub use view::View;
