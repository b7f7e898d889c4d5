//! Pages that a browser can show from the disk: a single file that loads nothing else.

use crate::atomic_file;
use serde_json::Value;
use std::io::Write;
use std::path::Path;

const STYLE: &str = include_str!("page/base.css");
/// Helpers for elements, values and tables; the script also reads the page's data.
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
    /// A script that runs once the body and `data` are loaded.
    pub script: &'a str,
}

impl Page<'_> {
    /// Returns the page with this data, which its script can access as `data`.
    pub fn render(self, data: &Value) -> String {
        // HTML parsers look for `</script` and `<!--` in a script element.
        let data = data.to_string().replace('<', r"\u003c");
        // All parts are inserted in one step, so none of them is searched for the placeholders of
        // the others.
        format!(
            include_str!("page/page.html"),
            title = escaped(self.title),
            base_style = STYLE,
            style = self.style,
            body = self.body,
            data = data,
            base_script = SCRIPT,
            script = self.script,
        )
    }
}

/// Writes a page, or any other content, to `path` atomically.
///
/// # Errors
/// The system's error.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> std::io::Result<()> {
    let mut file = atomic_file::unfinished(path)?;
    file.write_all(content.as_ref())?;
    atomic_file::persist(file, path)
}

/// Escapes text for an element of HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Checks that a page is complete, has no duplicate id, and loads nothing from outside.
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

    /// The data element ends where it should, whatever the data.
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

    /// Tests the part of the script that needs no page.
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
