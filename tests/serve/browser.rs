//! Chromium, driven through its DevTools protocol over two pipes.

use crate::explain::browser::chromium;
use crate::waiting::PATIENCE;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Connects Chromium's standard input and output to the pipes of the DevTools protocol.
const PIPES: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"#;

/// A page in a browser, closed on drop.
pub struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    sent: u64,
    session: Option<String>,
    /// Errors that the page reported.
    complaints: Vec<String>,
    _profile: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Opens a page of a server; returns `None` without Chromium.
    pub fn open(url: &str) -> Option<Browser> {
        let mut browser = Browser::start()?;
        browser.go(url);
        Some(browser)
    }

    /// Starts a browser without a page; returns `None` without Chromium.
    pub fn start() -> Option<Browser> {
        let Some(chromium) = chromium() else {
            crate::skip::skip("Chromium (Debian: apt install chromium)");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", PIPES, chromium, "--headless", "--no-sandbox"])
            .args([
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
            ])
            .args(["--no-first-run", "--window-size=1100,900"])
            .arg("--accept-lang=en-US")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut browser = Browser {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            sent: 0,
            session: None,
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = browser.send("Target.createTarget", json!({"url": "about:blank"}));
        let attached = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.send("Target.attachToTarget", attached);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime", "Log", "Page"] {
            browser.send(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Navigates to a page and waits for it. Pages with modules signal when they are ready.
    pub fn go(&mut self, url: &str) {
        self.send("Page.navigate", json!({"url": url}));
        let is_here = format!("location.href === {}", json!(url));
        let is_ready = "document.readyState === 'complete' && (document.body.dataset.ready \
                        || !document.querySelector('script[type=module]'))";
        self.wait(&format!("{is_here} && {is_ready}"));
    }

    /// Reloads the page and waits for it.
    pub fn reload(&mut self) {
        self.evaluate("document.body.dataset.ready = ''");
        self.send("Page.reload", json!({}));
        self.wait("document.readyState === 'complete' && document.body.dataset.ready");
    }

    /// Sets the width of the screen in pixels.
    pub fn resize(&mut self, width: u32) {
        self.screen(width, 900);
    }

    /// Sets the size of the screen in pixels.
    pub fn screen(&mut self, width: u32, height: u32) {
        self.show(width, height, width < 600);
    }

    /// Sets the size of a window whose scroll bars take room, in pixels.
    pub fn window(&mut self, width: u32, height: u32) {
        self.show(width, height, false);
    }

    fn show(&mut self, width: u32, height: u32, is_phone: bool) {
        let screen =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone});
        self.send("Emulation.setDeviceMetricsOverride", screen);
    }

    /// Sends a command; returns its result.
    pub fn send(&mut self, method: &str, parameters: Value) -> Value {
        let result = self.ask(method, parameters);
        result.unwrap_or_else(|message| panic!("{method}: {message}"))
    }

    /// Sends a command; returns its result, or the message that it failed.
    fn ask(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.sent += 1;
        let mut command = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.input
            .write_all(command.to_string().as_bytes())
            .unwrap();
        self.input.write_all(&[0]).unwrap();
        loop {
            let mut message = Vec::new();
            self.output.read_until(0, &mut message).unwrap();
            assert_eq!(message.pop(), Some(0), "the browser has exited");
            let mut message: Value = serde_json::from_slice(&message).unwrap();
            if message["id"] == self.sent {
                return match message.get("error") {
                    None => Ok(message["result"].take()),
                    Some(_) => Err(message),
                };
            }
            self.hear(&message);
        }
    }

    /// Records errors that the page reports.
    fn hear(&mut self, message: &Value) {
        let about = &message["params"];
        let is_complaint = match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => about["type"] == "error",
            Some("Log.entryAdded") => about["entry"]["level"] == "error",
            _ => false,
        };
        if is_complaint {
            self.complaints.push(about.to_string());
        }
    }

    /// Returns the value of an expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let value = self.value(expression);
        value.unwrap_or_else(|message| panic!("{expression}: {message}"))
    }

    /// Returns the value of an expression in the page, or the browser's message if it has no value,
    /// for example because the page was reloaded meanwhile.
    fn value(&mut self, expression: &str) -> Result<Value, Value> {
        let parameters = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
        });
        let mut result = self.ask("Runtime.evaluate", parameters)?;
        let failure = result.get("exceptionDetails");
        assert!(failure.is_none(), "{expression}: {failure:?}");
        Ok(result["result"]["value"].take())
    }

    /// Waits until an expression is truthy.
    pub fn wait(&mut self, expression: &str) {
        self.wait_within(PATIENCE, expression);
    }

    /// Waits this long until an expression is truthy.
    pub fn wait_within(&mut self, patience: Duration, expression: &str) {
        let begun = Instant::now();
        let condition = format!("!!({expression})");
        loop {
            match self.value(&condition) {
                Ok(value) if value == json!(true) => return,
                Err(message) if !message.to_string().contains("navigated") => {
                    panic!("{expression}: {message}")
                }
                _ => {}
            }
            let page = || "document.body.innerText.slice(0, 1500)";
            if begun.elapsed() > patience {
                let page = self.evaluate(page());
                panic!(
                    "timed out waiting for {expression}: {page} {:?}",
                    self.complaints
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn text(&mut self, selector: &str) -> String {
        let text = self.evaluate(&format!("document.querySelector('{selector}').textContent"));
        text.as_str().unwrap().to_owned()
    }

    /// Fills in a field.
    pub fn fill(&mut self, selector: &str, value: &str) {
        let value = json!(value);
        self.evaluate(&format!(
            "{{ const field = document.querySelector('{selector}'); field.value = {value}; \
             field.dispatchEvent(new Event('change', {{ bubbles: true }})); }}"
        ));
    }

    /// Clicks an element with the mouse. Tries again if the page moved the element meanwhile, so that
    /// something else was hit.
    pub fn click(&mut self, selector: &str) {
        let begun = Instant::now();
        loop {
            let place = self.place(selector);
            self.evaluate(&format!(
                "{{ window.hit = null; \
                 const note = ({{ target }}) => (window.hit = document.querySelector('{selector}')?.contains(target)); \
                 document.addEventListener('pointerdown', note, {{ capture: true, once: true }}); }}"
            ));
            self.press(place);
            // It is null if the element takes no clicks.
            if self.evaluate("window.hit") != json!(false) {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{selector} does not keep its place"
            );
        }
    }

    /// Scrolls to an element and returns its centre, once it keeps its place.
    fn place(&mut self, selector: &str) -> [f64; 2] {
        let mut last = None;
        let begun = Instant::now();
        loop {
            let place = self.evaluate(&format!(
                "{{ const element = document.querySelector('{selector}'); \
                 element.scrollIntoView({{ block: 'center' }}); \
                 const {{ x, y, width, height }} = element.getBoundingClientRect(); \
                 [x + width / 2, y + height / 2] }}"
            ));
            let place = [0, 1].map(|index| place[index].as_f64().unwrap());
            if last.replace(place) == Some(place) {
                return place;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{selector} does not keep its place"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Clicks a square of a board in White's orientation.
    pub fn click_square(&mut self, board: &str, square: &str) {
        let place = self.square(board, square);
        self.press(place);
    }

    /// Returns the centre of a square of a board in White's orientation.
    pub fn square(&mut self, board: &str, square: &str) -> [f64; 2] {
        let board = format!("{board} cg-board");
        let [x, y] = self.place(&board);
        let width = self.evaluate(&format!(
            "document.querySelector('{board}').getBoundingClientRect().width"
        ));
        let [file, rank] = [square.as_bytes()[0] - b'a', square.as_bytes()[1] - b'1'];
        let side = width.as_f64().unwrap() / 8.0;
        [
            x + side * (f64::from(file) - 3.5),
            y + side * (3.5 - f64::from(rank)),
        ]
    }

    /// Presses and releases a key.
    pub fn key(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "code": key, "text": text});
            self.send("Input.dispatchKeyEvent", event);
        }
    }

    fn press(&mut self, [x, y]: [f64; 2]) {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
            self.send("Input.dispatchMouseEvent", event);
        }
    }

    /// Asserts that the page reported no errors.
    pub fn assert_quiet(&mut self) {
        self.evaluate("0");
        assert!(self.complaints.is_empty(), "{:?}", self.complaints);
        let trouble = self.evaluate("document.querySelector('#trouble')?.textContent ?? ''");
        assert_eq!(trouble, "");
    }
}
