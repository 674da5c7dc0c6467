//! The OpenAPI document: responses common to all paths.

use super::super::problem::Problem;
use utoipa::PartialSchema as _;
use utoipa::ToSchema as _;
use utoipa::openapi::{
    Content, OpenApi, Ref, RefOr, ResponseBuilder, ResponsesBuilder, path::Operation,
};

/// Responses of the layers common to all paths: status and condition.
const COMMON: [(&str, &str); 7] = [
    ("400", "A parameter or header is invalid"),
    ("401", "The daemon's token is missing or wrong"),
    ("403", "A page of another origin sent the request"),
    ("408", "No answer within a minute"),
    ("421", "`Host` does not name this machine"),
    ("500", "Internal error of the daemon; see its log"),
    ("503", "The database does not answer"),
];

/// Adds the common responses, and gives each problem its media type.
pub(super) fn complete(mut document: OpenApi) -> OpenApi {
    for item in document.paths.paths.values_mut() {
        let operations = [
            &mut item.get,
            &mut item.post,
            &mut item.put,
            &mut item.delete,
            &mut item.patch,
        ];
        for operation in operations.into_iter().flatten() {
            complete_operation(operation);
        }
    }
    let components = document.components.get_or_insert_default();
    components
        .schemas
        .insert(Problem::name().into_owned(), Problem::schema());
    document
}

fn complete_operation(operation: &mut Operation) {
    let own = std::mem::take(&mut operation.responses.responses);
    let mut responses = ResponsesBuilder::new();
    for (status, description) in COMMON {
        if !own.contains_key(status) {
            let response = ResponseBuilder::new().description(description);
            responses = responses.response(status, response.content(MEDIA_TYPE, problem()));
        }
    }
    for (status, mut response) in own {
        if let RefOr::T(response) = &mut response
            && is_problem(response.content.get("application/json"))
        {
            response.content.shift_remove("application/json");
            response
                .content
                .insert(MEDIA_TYPE.to_owned(), problem().into());
        }
        responses = responses.response(status, response);
    }
    operation.responses = responses.build();
}

const MEDIA_TYPE: &str = "application/problem+json";

fn problem() -> Content {
    Content::new(Some(Ref::from_schema_name(Problem::name())))
}

fn is_problem(content: Option<&RefOr<Content>>) -> bool {
    let Some(RefOr::T(content)) = content else {
        return false;
    };
    match &content.schema {
        Some(RefOr::Ref(reference)) => reference.ref_location.ends_with(&*Problem::name()),
        _ => false,
    }
}
