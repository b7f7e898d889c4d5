// Checks every tab of the page with axe-core: light and dark, in all languages, and the documents.
//
//   npm install --prefix /tmp/axe axe-core puppeteer-core
//   tessera serve &
//   node bench/serve/axe.mjs /tmp/axe http://127.0.0.1:8080
//
// Prints each violation, and how many views were checked. Needs Chromium.

import { readFileSync } from "node:fs";

const [packages, server] = process.argv.slice(2);
const { default: puppeteer } = await import(`${packages}/node_modules/puppeteer-core/lib/esm/puppeteer/puppeteer-core.js`);
const axe = readFileSync(`${packages}/node_modules/axe-core/axe.min.js`, "utf8");
const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
let views = 0;

async function check(page, view) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  views += 1;
  for (const { id, impact, nodes } of violations) console.log(`${view}: ${impact}: ${id}: ${nodes[0].html.slice(0, 120)}`);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Fills a tab's form and submits it. */
const submit = (page, form, values) => page.evaluate((form, values) => {
  const { elements } = document.querySelector(form);
  for (const [name, value] of Object.entries(values)) elements[name].value = value;
  document.querySelector(`${form} .main`).click();
}, form, values);

async function checkTabs(language, theme) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  const look = async (name) => {
    await pause(400);
    await check(page, `${language}, ${theme}, ${name}`);
  };
  const open = (part) => page.evaluate((part) => (location.hash = part), part);
  await page.setViewport({ width: 1366, height: 768 });
  await page.evaluateOnNewDocument((settings) => localStorage.setItem("settings", settings), JSON.stringify({ judge: "none", language, theme }));
  await page.goto(`${server}/#review`);
  await page.waitForFunction(() => document.body.dataset.ready);
  await look("review, form");
  await submit(page, "#review-form", { pgn: "1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0", nodes: 60, side: "black" });
  await page.waitForFunction(() => !document.getElementById("review-sides").hidden);
  await page.evaluate(() => (document.getElementById("review-figures").open = true));
  await look("review");
  await page.evaluate(() => document.querySelector('#review-moves [data-ply="6"]').click());
  await look("review, a mistake");
  await page.evaluate(() => document.querySelector("#review-why button.main")?.click());
  await look("review, again");
  await page.evaluate(() => document.getElementById("share").showModal());
  await look("share");
  await page.evaluate(() => document.getElementById("share").close());
  await open("mistakes");
  await look("mistakes");
  await open("analyse");
  await submit(page, "#analyse-form", { text: "1. e4 e5 2. Nf3 (2. f4 exf4) Nc6" });
  await pause(2000);
  await look("analyse");
  await open("explain");
  await pause(4000);
  await look("explain");
  await open("generate");
  if (await page.evaluate(() => !document.getElementById("generate-start").disabled)) {
    await submit(page, "#generate-form", { games: 1 });
    await page.waitForFunction(() => document.querySelector("#generate-games li"));
  }
  await look("generate");
  await open("play");
  await look("play, form");
  await page.evaluate(() => {
    document.getElementById("play-typed-move").value = "e4";
    document.querySelector("#play-typed button").click();
  });
  await pause(2000);
  await look("play");
  await page.evaluate(() => document.getElementById("settings-open").click());
  await look("settings");
  await context.close();
}

for (const language of ["en", "de", "es", "fr"]) {
  for (const theme of ["light", "dark"]) await checkTabs(language, theme);
}
for (const path of ["/docs", "/shared/none"]) {
  const page = await browser.newPage();
  await page.goto(server + path);
  await pause(1500);
  await check(page, path);
}
console.log(`${views} views checked`);
await browser.close();
