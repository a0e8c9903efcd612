//! Tables: the rows by which requests are checked, resources are shown, filtered and ordered, and the API is described.

pub mod dialect;
pub mod field;
pub mod frame;
pub mod json;
pub mod least;
pub mod like;
pub mod openapi;
pub mod page;
pub mod parameter;
pub mod query;
pub mod route;
pub mod row;
pub mod rule;
pub mod shape;
pub mod version;
