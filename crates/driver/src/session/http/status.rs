//! Answers that are refusals: which kind of error a status is.

use crate::error::{Error, Fate};

const SHOWN_LETTERS_MAX: usize = 200;

/// The error of an answer with a status that was not expected. The tally counts errors by their label, so it is made
/// of the status alone: what a server writes beside it could differ in each answer.
pub(super) fn refusal(asked: &str, status: u16, body: &[u8]) -> Error {
    let label = label(status);
    let said = shown(body);
    let message = match said.is_empty() {
        true => format!("{asked} was answered with {label}"),
        false => format!("{asked} was answered with {label}: {said}"),
    };
    Error::server(&label, Fate::Failed, message).hint(match status {
        401 | 403 => "check the token that the script sends, and whether it has expired",
        404 | 405 => "check the method and the path of the request",
        500..=599 => "read the log of the application",
        _ => "check what the script sends; where this answer is right, name its status in `expect`",
    })
}

/// The status with its phrase of RFC 9110, for those that applications use.
fn label(status: u16) -> String {
    let phrase = match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => return format!("status {status}"),
    };
    format!("{status} {phrase}")
}

/// The start of a body, on one line.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * SHOWN_LETTERS_MAX)]);
    let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN_LETTERS_MAX) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_is_made_of_the_status_alone() {
        let error = refusal("POST /v3/users", 409, b"{\"error\":\n \"Duplicate entry 7\"}");
        assert_eq!(error.label(), "409 Conflict");
        assert_eq!(error.fate(), Fate::Failed);
        assert_eq!(
            error.message(),
            "POST /v3/users was answered with 409 Conflict: {\"error\": \"Duplicate entry 7\"}"
        );
        assert_eq!(refusal("GET /", 418, b"").label(), "status 418");
        assert!(refusal("GET /", 500, b"").hint_text().contains("log"));
    }

    #[test]
    fn a_long_page_is_cut_between_letters() {
        let page = "ü".repeat(5000);
        let message = refusal("GET /", 500, page.as_bytes()).message().to_owned();
        assert!(message.ends_with("ü ...") && message.chars().count() < 300, "{message}");
    }
}
