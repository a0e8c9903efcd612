//! The description of the API, and the page that shows it.

use crate::support::{ask, at_genesis, get};
use dposlab::api::{Dialect, Request};
use serde_json::{Value, json};
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
            let target =
                path.replace("/page/{file}", "/page/main.js").replace("{file}", "index.html").replace(['{', '}'], "");
            for method in operations.as_object().expect("an object").keys() {
                let method: Method = method.to_uppercase().parse().expect("a method");
                let answered = ask(&context, &Request::new(method, &target), b"{}".to_vec());
                // Nobody keeps a log, webhooks, a recording or a past here, or makes chains.
                let of = ["debug", "webhooks", "/lab/chains", "/lab/recording", "/lab/views"];
                let is_kept = of.iter().any(|of| path.contains(of));
                assert!(is_kept || answered.body["message"] != "Not Found", "{target}: {}", answered.body);
            }
        }
    }
}

#[test]
fn bodies_and_answers_have_examples_and_the_lab_is_described() {
    for dialect in [Dialect::Documented, Dialect::Core26] {
        let description = get(&at_genesis(dialect).1, "/api/openapi.json").body;
        let (mut bodies, mut answers) = (0, 0);
        for (path, operations) in description["paths"].as_object().expect("an object") {
            for (method, operation) in operations.as_object().expect("an object") {
                if let Some(body) = operation.get("requestBody") {
                    let content = &body["content"]["application/json"];
                    assert!(content["schema"].is_object() && content["example"].is_object(), "{method} {path}: {body}");
                    bodies += 1;
                }
                let of_success = operation["responses"].as_object().expect("an object").iter();
                let has_json = |status: &&String| status.starts_with('2') && *status != "204";
                for (status, response) in of_success.filter(|(status, _)| has_json(status)) {
                    let Some(content) = response["content"].get("application/json") else { continue };
                    let is_itself = path == "/api/openapi.json";
                    assert!(is_itself || !content["example"].is_null(), "{method} {path} {status}");
                    answers += 1;
                }
            }
        }
        assert!(bodies >= 12 && answers > 50, "{bodies} bodies, {answers} answers");
        let advance = &description["paths"]["/lab/advance"]["post"];
        assert_eq!(advance["requestBody"]["content"]["application/json"]["example"], json!({"slots": 10}));
        assert_eq!(advance["tags"], json!(["lab"]));
        assert_eq!(
            description["components"]["responses"]["NotFound"]["content"]["application/json"]["example"]["statusCode"],
            404
        );
    }
}

/// What a page loads by itself: sources of scripts, styles and pictures, and what it loads from within a style. The targets of its
/// links are loaded when somebody follows them.
fn loads(page: &str) -> Vec<&str> {
    let marks = ["src=\"", "<link ", "url(", "@import "];
    let after = marks.iter().flat_map(|mark| page.split(mark).skip(1).map(move |rest| (*mark, rest)));
    let after = after.filter_map(|(mark, rest)| match mark {
        "<link " => rest.split('>').next()?.split_once("href=\"").map(|(_, href)| href),
        _ => Some(rest),
    });
    after.filter_map(|rest| rest.trim_start_matches(['"', '\'']).split(['"', '\'', ')', ' ']).next()).collect()
}

#[test]
fn an_answer_without_a_body_has_no_content() {
    let context = at_genesis(Dialect::Documented).1;
    let description = get(&context, "/api/openapi.json").body;
    let deleted = &description["paths"]["/api/webhooks/{id}"]["delete"]["responses"]["204"];
    assert!(deleted.is_object() && deleted.get("content").is_none(), "{deleted}");
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
