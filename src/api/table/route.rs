//! Routes: the rows of their table, and the checked request that a row hands to its handler.

use super::{
    dialect::DialectSet,
    frame::Frame,
    json,
    page::{Listing, Page},
    parameter::{Parameter, Parameters},
    row::{Member, write_members},
    select,
    shape::Shape,
};
use crate::api::{
    context::ApiContext,
    http::{ApiError, Reply, guard::Access, request::Request},
    view::Head,
};
use serde_json::{Map, Value};
use std::{pin::Pin, sync::Arc};
use warp::http::Method;

/// One route.
pub(crate) struct Route {
    pub verb: Verb,
    /// Segments in braces are arguments.
    pub path: &'static str,
    /// The rules of the path's arguments, all of them.
    pub arguments: &'static [Parameter],
    pub query: Query,
    /// The rules of the body's members, for routes that read one.
    pub body: Option<&'static [&'static [Parameter]]>,
    /// The shape of the body, for routes whose handler reads it.
    pub written: Option<Shape>,
    pub spoken: DialectSet,
    pub handle: Handle,
    /// The clients that may use the route.
    pub access: Access,
    /// True if the answer has a `Last-Modified`. It changes with the chain only.
    pub is_dated: bool,
    /// True if the answer may be 404 although the path has no argument.
    pub may_be_missing: bool,
    /// True if the answer may be 409.
    pub may_conflict: bool,
    /// The purpose of the route, in a sentence.
    pub about: &'static str,
    /// The shape of its answer.
    pub shown: AnswerShape,
    /// True if the answer depends on the chain and the request alone, so that it can be cached.
    pub is_of_chain: bool,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Verb {
    /// The verb of a method. HEAD counts as GET. `None` for a method that no route has.
    pub fn of(method: &Method) -> Option<Self> {
        match *method {
            Method::GET | Method::HEAD => Some(Self::Get),
            Method::POST => Some(Self::Post),
            Method::PUT => Some(Self::Put),
            Method::DELETE => Some(Self::Delete),
            _ => None,
        }
    }
}

/// The use that a route makes of the query.
#[derive(Clone, Copy)]
pub(crate) enum Query {
    Ignored,
    /// Checks these parameters and ignores all others.
    Known(&'static [&'static [Parameter]]),
    /// Checks these parameters and refuses all others.
    Only(&'static [&'static [Parameter]]),
}

/// The shape of an answer.
#[derive(Clone, Copy)]
pub(crate) enum AnswerShape {
    /// One thing: `{"data":…}`.
    Data(Shape),
    /// A page of a list: `{"meta":…,"data":[…]}`.
    Page(Shape),
    /// The same, with a flag that the total is an estimate.
    Counted(Shape),
    /// A new resource: `{"data":…}` with 201.
    Created(Shape),
    /// No body.
    Nothing,
    /// The whole body.
    Whole(Shape),
    /// Plain text.
    Text,
    /// A file.
    Bytes,
    /// Server-sent events, such as these.
    Events(&'static str),
    /// Figures as Prometheus reads them.
    Metrics,
    /// A page.
    Html,
    /// A part of a page.
    Site,
}

/// The function that answers.
#[derive(Clone, Copy)]
pub(crate) enum Handle {
    /// From one head, at once.
    Now(fn(&Call<'_>) -> Outcome),
    /// Waits for the simulation.
    Later(for<'c> fn(Call<'c>) -> Answer<'c>),
}

/// An answer, or the reason why there is none.
pub(crate) type Outcome = Result<Reply, ApiError>;

/// An answer that waits for the simulation.
pub(crate) type Answer<'c> = Pin<Box<dyn Future<Output = Outcome> + Send + 'c>>;

/// A route that a path leads to, with the texts of its arguments, still encoded.
pub(crate) struct Match<'p> {
    pub route: &'static Route,
    pub arguments: Vec<(&'static str, &'p str)>,
}

impl Route {
    pub const fn get(path: &'static str, query: Query, handle: fn(&Call<'_>) -> Outcome) -> Self {
        Self::new(Verb::Get, path, query, Handle::Now(handle))
    }

    pub const fn later(
        verb: Verb,
        path: &'static str,
        query: Query,
        handle: for<'c> fn(Call<'c>) -> Answer<'c>,
    ) -> Self {
        Self::new(verb, path, query, Handle::Later(handle))
    }

    /// A search: its parameters are in the body.
    pub const fn search(
        path: &'static str,
        query: Query,
        body: &'static [&'static [Parameter]],
        handle: fn(&Call<'_>) -> Outcome,
    ) -> Self {
        Self::new(Verb::Post, path, query, Handle::Now(handle)).with_body(body)
    }

    pub const fn new(verb: Verb, path: &'static str, query: Query, handle: Handle) -> Self {
        let spoken = DialectSet::Always;
        Self {
            verb,
            path,
            arguments: &[],
            query,
            body: None,
            written: None,
            spoken,
            handle,
            access: Access::Everyone,
            is_dated: false,
            may_be_missing: false,
            may_conflict: false,
            about: "",
            shown: AnswerShape::Whole(Shape::Any),
            is_of_chain: false,
        }
    }

    pub const fn with_body(self, body: &'static [&'static [Parameter]]) -> Self {
        Self { body: Some(body), ..self }
    }

    /// The same, with a body of this shape that the handler reads.
    pub const fn written(self, shape: Shape) -> Self {
        Self { written: Some(shape), ..self }
    }

    pub const fn spoken(self, spoken: DialectSet) -> Self {
        Self { spoken, ..self }
    }

    pub const fn of(self, arguments: &'static [Parameter]) -> Self {
        Self { arguments, ..self }
    }

    pub const fn on_loopback(self) -> Self {
        Self { access: Access::Loopback, ..self }
    }

    pub const fn for_webhooks(self) -> Self {
        Self { access: Access::Webhooks, ..self }
    }

    pub const fn or_missing(self) -> Self {
        Self { may_be_missing: true, ..self }
    }

    pub const fn or_conflicting(self) -> Self {
        Self { may_conflict: true, ..self }
    }

    pub const fn shows(self, about: &'static str, shown: AnswerShape) -> Self {
        Self { about, shown, ..self }
    }

    pub const fn dated(self) -> Self {
        Self { is_dated: true, ..self }.of_chain()
    }

    /// The same, with a cached answer. An answer to a request with a body is not cached.
    pub const fn of_chain(self) -> Self {
        Self { is_of_chain: matches!(self.verb, Verb::Get) && self.body.is_none(), ..self }
    }

    /// True if the route reads, changes nothing and answers at once. This includes searches and excludes streams.
    pub fn only_looks(&self) -> bool {
        let is_search = self.verb == Verb::Post && self.path.ends_with("/search") || self.path == "/api/locks/unlocked";
        (self.verb == Verb::Get && self.path != "/lab/events") || is_search
    }

    /// True if links of the route contain `transform`.
    pub fn has_transform(&self) -> bool {
        match self.query {
            Query::Only(tables) => {
                tables.iter().any(|table| table.iter().any(|parameter| parameter.name == "transform"))
            }
            Query::Ignored | Query::Known(_) => false,
        }
    }

    /// True if a path matches the route. Adds the texts of the path's arguments.
    pub fn leads_to<'p>(&self, path: &'p str, arguments: &mut Vec<(&'static str, &'p str)>) -> bool {
        let mut found = path.split('/');
        let mut wanted = self.path.split('/');
        loop {
            match (wanted.next(), found.next()) {
                (None, None) => return true,
                (Some(wanted), Some(found)) if wanted == found => {}
                (Some(wanted), Some(found)) if !found.is_empty() => {
                    let Some(name) = wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}')) else {
                        return false;
                    };
                    arguments.push((name, found));
                }
                _ => return false,
            }
        }
    }
}

/// A request that has passed all checks of its route.
pub(crate) struct Call<'c> {
    pub context: &'c ApiContext,
    pub request: &'c Request,
    /// The one head the answer is read from.
    pub head: Arc<Head>,
    pub route: &'static Route,
    /// The table that contains the route.
    pub routes: &'static [Route],
    /// Without version.
    pub path: &'c str,
    /// The arguments in the path.
    pub arguments: Parameters,
    /// As sent, for links.
    pub query: Map<String, Value>,
    pub parameters: Parameters,
    /// Null where the route reads none.
    pub body: Value,
}

impl Call<'_> {
    /// The view, head and dialect that the answer is read from.
    pub fn frame(&self) -> Frame<'_> {
        Frame { view: &self.context.view, head: &self.head, dialect: self.context.settings.dialect }
    }

    /// The text of a path's argument.
    pub fn argument(&self, name: &str) -> &str {
        self.arguments.text(name).unwrap_or_default()
    }

    /// The number in the path.
    ///
    /// # Errors
    /// The path has no `id` that fits a `u64`.
    pub fn id(&self) -> Result<u64, ApiError> {
        self.arguments.number("id").ok_or(ApiError::NO_ROUTE)
    }

    /// The page asked for.
    pub fn page(&self) -> Page {
        Page::of(&self.parameters)
    }

    /// The rows that pass all filters of the request.
    pub fn matching<R>(&self, table: &[Member<R>], rows: impl Iterator<Item = R>) -> Vec<R> {
        let frame = self.frame();
        rows.filter(|row| select::matches(table, &self.parameters, row, &frame)).collect()
    }

    /// One page of rows in the requested order, or else in the order `unasked`. Without either the rows keep their
    /// order.
    pub fn ordered<R: Clone>(&self, table: &[Member<R>], rows: Vec<R>, unasked: Option<(&str, bool)>) -> Listing<R> {
        match self.parameters.order().or(unasked) {
            Some(order) => self.page().cut(select::sort(table, order, rows, &self.frame())),
            None => self.page().cut(rows),
        }
    }

    /// One page of a list.
    pub fn list<T>(&self, listing: Listing<T>, write: impl Fn(&mut Vec<u8>, &T, &Frame<'_>)) -> Reply {
        let path = self.path.strip_prefix("/api").unwrap_or(self.path);
        let frame = self.frame();
        let link = (path, &self.query, self.route.has_transform());
        Reply::json(listing.write(self.page(), link, |out, row| write(out, &row, &frame)))
    }

    /// One page of a list, by its table.
    pub fn list_rows<R>(&self, listing: Listing<R>, table: &[Member<R>]) -> Reply {
        self.list(listing, |out, row, frame| write_members(out, table, row, frame))
    }

    /// One resource.
    pub fn show(&self, write: impl FnOnce(&mut Vec<u8>, &Frame<'_>)) -> Reply {
        Reply::json(json::data(|out| write(out, &self.frame())))
    }

    /// One resource, by its table.
    pub fn show_row<R>(&self, table: &[Member<R>], row: &R) -> Reply {
        self.show(|out, frame| write_members(out, table, row, frame))
    }

    /// A whole list, by its table.
    pub fn show_rows<R>(&self, table: &[Member<R>], rows: &[R]) -> Reply {
        self.show(|out, frame| json::write_list(out, rows, |out, row| write_members(out, table, row, frame)))
    }
}
