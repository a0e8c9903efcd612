//! The API from outside: recorded exchanges with a real node, a small simulated network, and a real socket.

#[path = "api/recorded.rs"]
mod recorded;
#[path = "api/support.rs"]
mod support;
