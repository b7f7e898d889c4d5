//! HTML pages for viewing from disk. Each page is a single file that loads no other files; its content
//! security policy allows only its own script and style.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page/base.css");
/// The script that all pages share. It contains helpers for elements, values and tables, and reads
/// the page's data.
pub(crate) const SCRIPT: &str = concat!(
    include_str!("page/base.js"),
    include_str!("page/elements.js")
);

/// The parts of one kind of page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    pub title: &'a str,
    /// The HTML of the body.
    pub body: &'a str,
    pub style: &'a str,
    /// A script that runs after the body and `data` have been loaded.
    pub script: &'a str,
}

impl Page<'_> {
    /// Returns the page with this data, which the page's script can access as `data`.
    pub fn render(self, data: &Value) -> String {
        // `</script` and `<!--` have a special meaning within a script element.
        let data = data.to_string().replace('<', r"\u003c");
        let style = format!("\n{STYLE}{}", self.style);
        let script = format!("\n{SCRIPT}{}", self.script);
        // All parts are inserted in one step, so placeholders that occur in a part are not
        // replaced.
        format!(
            include_str!("page/page.html"),
            title = escaped(self.title),
            policy = policy(&style, &script),
            style = style,
            body = self.body,
            data = data,
            script = script,
        )
    }
}

/// Returns the content security policy of a page with this style and script.
fn policy(style: &str, script: &str) -> String {
    let hash = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; \
         base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    )
}

/// Returns the content security policy that a rendered page states.
#[cfg(feature = "serve")]
pub(crate) fn policy_of(page: &str) -> Option<&str> {
    // It precedes everything that the page shows.
    let (_, policy) = page.split_once("<meta http-equiv=\"Content-Security-Policy\" content=\"")?;
    Some(policy.split_once('"')?.0)
}

/// Escapes text for an element of HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Checks that a page is complete, has no duplicate id, and loads no other files.
#[cfg(test)]
pub(crate) fn assert_self_contained(page: &str) {
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains("{{"));
    let (markup, _) = page.split_once("<script").unwrap();
    let mut ids = std::collections::HashSet::new();
    for id in markup.split(" id=\"").skip(1) {
        let (id, _) = id.split_once('"').unwrap();
        assert!(ids.insert(id), "two elements have the id {id}");
    }
    for foreign in ["http://", "https://", "src=", "@import", "url("] {
        // The SVG namespace is a name, not an address.
        let page = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::process::Command;

    /// The data cannot end the data element early.
    #[test]
    fn no_name_is_taken_for_markup() {
        let hostile = [
            "<!--<script>",
            "</script><script>",
            "]]>",
            "{{data}} {style} & \" ' \u{2028} \u{0}",
        ];
        for name in hostile {
            let page = Page {
                title: name,
                body: "",
                style: "",
                script: "",
            };
            let data = json!({ "name": name, name: 1 });
            let html = page.render(&data);
            let (_, after) = html
                .split_once("<script type=\"application/json\">")
                .unwrap();
            let (written, _) = after.split_once('<').unwrap();
            assert_eq!(serde_json::from_str::<Value>(written).unwrap(), data);
            let (_, after) = html.split_once("<title>").unwrap();
            let (title, _) = after.split_once('<').unwrap();
            assert_eq!(title, name.replace('&', "&amp;").replace('<', "&lt;"));
            assert_self_contained(&html.replace("{{data}}", ""));
        }
    }

    /// Tests the functions of the script that do not need a page.
    #[test]
    fn what_is_absent_is_shown_as_absent() {
        let shown = "[undefined, null, NaN, Math.max(), 0 / 0, 0, 12345].map(short).join(' ')";
        let script = format!(
            "globalThis.document = {{ querySelector: () => ({{ textContent: '[]' }}) }};\n\
             {SCRIPT}\nconsole.log({shown});"
        );
        let Ok(output) = Command::new("node").args(["-e", &script]).output() else {
            crate::skip::skip("node");
            return;
        };
        let shown = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(shown.trim_end(), "– – – – – 0 12.35 k", "{errors}");
    }
}
