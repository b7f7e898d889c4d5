//! Tests the page's layout on the screens that people have.

use super::{contains, count, open};
use crate::serve::Server;
use crate::serve::browser::Browser;
use serde_json::json;

/// Width and height of screens, and the smallest board that uses them, in pixels.
const SCREENS: [(u32, u32, u32); 9] = [
    (844, 390, 384),
    (667, 375, 368),
    (568, 320, 320),
    (768, 1024, 640),
    (1024, 768, 560),
    (390, 844, 360),
    (360, 640, 272),
    (1280, 600, 520),
    (1366, 650, 560),
];

/// Returns whether an element is wholly on the screen.
fn seen(selector: &str) -> String {
    format!(
        "(() => {{ const {{ top, bottom, left, right, width }} = document.querySelector('{selector}').getBoundingClientRect(); \
         return width > 0 && top >= 0 && left >= 0 && bottom <= innerHeight + 1 && right <= innerWidth + 1; }})()"
    )
}

/// Asserts that a tab's board has this width, and that nothing overflows or is cut off.
fn assert_fits(browser: &mut Browser, part: &str, [width, height, least]: [u32; 3]) {
    let screen = format!("{part} at {width}×{height}");
    browser.wait(&seen(&format!("#{part}-board")));
    let board = browser.evaluate(&format!(
        "document.querySelector('#{part}-board').getBoundingClientRect().width"
    ));
    assert!(
        board.as_f64() >= Some(f64::from(least)),
        "{screen}: {board}"
    );
    let overflow = browser.evaluate("document.documentElement.scrollWidth - innerWidth");
    assert!(overflow.as_f64() <= Some(0.0), "{screen}: {overflow}");
    let cut = browser.evaluate(
        "[...document.querySelectorAll('nav a')].filter((it) => it.checkVisibility()).filter((it) => { \
           const [own, all] = [it.getBoundingClientRect(), it.parentElement.getBoundingClientRect()]; \
           return own.left < all.left - 1 || own.right > all.right + 1 || it.scrollWidth > it.clientWidth; \
         }).map((it) => it.textContent)",
    );
    assert_eq!(cut, json!([]), "{screen}");
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn the_board_uses_every_screen() {
    let server = Server::start(&["--backend", "torch"]);
    for part in ["play", "analyse", "explain", "generate"] {
        let Some(mut browser) = open(&server, part) else {
            return;
        };
        for (width, height, least) in SCREENS {
            browser.screen(width, height);
            assert_fits(&mut browser, part, [width, height, least]);
        }
        // A message covers neither the board nor the clocks.
        browser.screen(1366, 768);
        browser.evaluate(
            "dispatchEvent(new CustomEvent('trouble', { detail: { text: 'The server does not answer. '.repeat(3), \
             retry() {} } }))",
        );
        let covered = browser.evaluate(
            "(() => { const box = document.querySelector('#trouble').getBoundingClientRect(); \
               return [...document.querySelectorAll('main:not([hidden]) :is(.board, .seat)')].filter((it) => { \
                 const { left, right, top, bottom } = it.getBoundingClientRect(); \
                 return left < box.right && right > box.left && top < box.bottom && bottom > box.top; \
               }).map((it) => it.id); })()",
        );
        assert_eq!(covered, json!([]), "{part}");
        browser.click("#trouble");
        browser.assert_quiet();
    }
}

/// In a narrow window, a scroll bar neither covers the board nor makes the page scroll sideways.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_scroll_bar_leaves_the_board_whole() {
    let server = Server::start(&["--backend", "torch"]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    // Every tab is longer than the window.
    browser.evaluate(
        "document.getElementById('tabs').append(Object.assign(document.createElement('div'), \
           { style: 'height: 100rem' }))",
    );
    for part in ["play", "analyse", "explain", "generate"] {
        browser.evaluate(&format!("location.hash = '{part}'"));
        for (width, height) in [(390, 844), (768, 1024), (1024, 768), (1280, 600)] {
            browser.window(width, height);
            let window = format!("{part} at {width}×{height}");
            browser.wait(&seen(&format!("#{part}-board")));
            let [all, inside, edge] = [
                "document.documentElement.scrollWidth",
                "document.documentElement.clientWidth",
                "document.querySelector('main:not([hidden]) .board').getBoundingClientRect().right",
            ]
            .map(|it| browser.evaluate(it).as_f64().unwrap());
            assert!(inside < f64::from(width), "{window}: no scroll bar");
            assert!(
                all <= inside && edge <= inside,
                "{window}: {all}, {edge}, {inside}"
            );
        }
    }
    browser.assert_quiet();
}

/// In a review, the board and the reason for a mark are on the screen together.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_review_shows_board_and_reason_together() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "review") else {
        return;
    };
    browser.evaluate("localStorage.setItem('settings', '{\"judge\":\"none\"}')");
    browser.reload();
    browser.fill(
        "#review-form [name=pgn]",
        "1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0",
    );
    browser.fill("#review-form [name=nodes]", "60");
    browser.click("#review-form .main");
    browser.wait(&contains("#review-status", "to look at"));
    for (width, height, least) in SCREENS {
        browser.screen(width, height);
        assert_fits(&mut browser, "review", [width, height, least.min(470)]);
        browser.evaluate("document.querySelector('#review-moves [data-ply=\"6\"]').click()");
        for selector in [
            "#review-board",
            "#review-moment",
            "#review-why p:nth-of-type(2)",
        ] {
            browser.wait(&seen(selector));
        }
    }
    assert_eq!(browser.evaluate(&count("#review-moves button")), 7);
    browser.assert_quiet();
}
