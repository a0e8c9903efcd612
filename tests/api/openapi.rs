//! The description of the API, and the page that shows it.

use crate::support::{ask, at_genesis, get};
use dposlab::api::{Dialect, Request};
use serde_json::Value;
use warp::http::Method;

#[test]
fn the_description_holds_for_its_dialect() {
    let parameters = |dialect| -> Vec<String> {
        let described = get(&at_genesis(dialect).1, "/api/openapi.json");
        assert_eq!((described.status, &described.body["openapi"]), (200, &Value::from("3.1.0")));
        let parameters =
            described.body["paths"]["/api/blocks"]["get"]["parameters"].as_array().expect("a list").clone();
        parameters.iter().map(|parameter| parameter["name"].as_str().expect("a text").to_owned()).collect()
    };
    let documented = parameters(Dialect::Documented);
    assert!(documented.contains(&"height.from".to_owned()) && documented.contains(&"payloadHash".to_owned()));
    let core = parameters(Dialect::Core26);
    assert!(
        core.contains(&"height".to_owned()) && !core.iter().any(|name| name.contains('.') || name == "payloadHash")
    );
}

#[test]
fn every_described_path_leads_somewhere() {
    for dialect in [Dialect::Documented, Dialect::Core26] {
        let context = at_genesis(dialect).1;
        let description = get(&context, "/api/openapi.json").body;
        let paths = description["paths"].as_object().expect("an object");
        assert!(paths.len() > 40);
        for (path, operations) in paths {
            let target = path.replace("{file}", "index.html").replace(['{', '}'], "");
            for method in operations.as_object().expect("an object").keys() {
                let method: Method = method.to_uppercase().parse().expect("a method");
                let answered = ask(&context, &Request::new(method, &target), b"{}".to_vec());
                // Nobody keeps a log or webhooks here.
                let is_kept = path.ends_with("debug") || path.contains("webhooks");
                assert!(is_kept || answered.body["message"] != "Not Found", "{target}: {}", answered.body);
            }
        }
    }
}

/// Sources of scripts, styles and pictures, and whatever a page loads from within a style.
fn loads(page: &str) -> Vec<&str> {
    let marks = ["src=\"", "href=\"", "url(", "@import "];
    let after = marks.iter().flat_map(|mark| page.split(mark).skip(1));
    after.filter_map(|rest| rest.trim_start_matches(['"', '\'']).split(['"', '\'', ')', ' ']).next()).collect()
}

#[test]
fn the_page_loads_nothing_from_elsewhere() {
    let context = at_genesis(Dialect::Documented).1;
    let entrance = get(&context, "/api/docs");
    assert_eq!((entrance.status, entrance.reply.location.as_deref()), (301, Some("/api/docs/index.html")));
    let page = String::from_utf8(get(&context, "/api/docs/index.html").reply.body.to_vec()).expect("a text");
    let parts = loads(&page);
    assert!(parts.len() >= 3, "{page}");
    for part in parts.into_iter().filter(|part| !part.starts_with("data:")) {
        assert!(!part.contains("//"), "{part}");
        let loaded = get(&context, &format!("/api/docs/{}", part.trim_start_matches("./")));
        assert_eq!(loaded.status, 200, "{part}");
        if part.ends_with(".css") {
            let style = String::from_utf8(loaded.reply.body.to_vec()).expect("a text");
            for source in loads(&style) {
                assert!(source.starts_with("data:"), "{part}: {source}");
            }
        }
    }
    let settings = String::from_utf8(get(&context, "/api/docs/start.js").reply.body.to_vec());
    assert!(settings.expect("a text").contains("\"/api/openapi.json\""));
    assert_eq!(get(&context, "/api/docs/nothing.js").status, 404);
}
