'use strict';
// Uses the page in Firefox: node page.cjs BASE_URL FIREFOX GATES, where GATES is the folder of the fake engine's gates. Says what it has seen,
// a line for each flow, and ends with a status that isn't 0 when one fails. The library is found by NODE_PATH.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const puppeteer = require('puppeteer-core');

const [base, executablePath, gates] = process.argv.slice(2);
const release = (gate) => fs.writeFileSync(path.join(gates, gate), '');

async function main() {
  const browser = await puppeteer.launch({ browser: 'firefox', executablePath, headless: true, protocol: 'webDriverBiDi' });
  const faults = [];
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(60_000);
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('console', (said) => said.type() === 'error' && faults.push(said.text()));
    await page.setViewport({ width: 1280, height: 800 });
    await page.goto(`${base}/#/chat`);
    await page.evaluate(() => localStorage.setItem('lmcaddy.chat.options', '{"hasTitles":false}')); // they'd be requests of their own
    await page.reload();
    await page.waitForFunction(() => document.querySelector('.model-picker')?.value);
    const ask = async (question) => {
      await page.waitForSelector('.composer textarea');
      await page.type('.composer textarea', question);
      await page.keyboard.press('Enter');
    };
    const shows = (text) => page.waitForFunction((text) => document.querySelector('.turn:last-child .md')?.innerText.trim() === text, {}, text);
    const isDone = () => page.waitForFunction(() => document.querySelector('.turn:last-child .answer')?.getAttribute('aria-busy') === 'false');
    const click = async (name) => {
      const button = await page.waitForFunction((name) => [...document.querySelectorAll('button')].find((e) =>
        (e.ariaLabel ?? e.textContent).trim().startsWith(name) && e.checkVisibility()), {}, name);
      await button.click();
    };

    await ask('Hello');
    await shows('Hello there.');
    await isDone();
    console.log('a question is answered');

    await click('New chat');
    await ask('count');
    await shows('one two');
    console.log('an answer streams');
    await page.waitForFunction(() => location.hash.startsWith('#/chat/resp_'));
    await page.reload();
    await shows('one two');
    assert.equal(await page.$eval('.composer textarea', (e) => e.value), '');
    release('half');
    await shows('one two three four');
    await isDone();
    console.log('a reload joins it');

    await click('New chat');
    await ask('forever');
    await shows('five six');
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => document.body.innerText.includes('Stopped.'));
    await isDone();
    console.log('it is stopped');

    await click('Model: ');
    await page.waitForSelector('dialog[open] input');
    await page.type('dialog[open] input', 'second');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('.model-picker').value === 'lmcaddy/second');
    await click('New chat');
    await ask('Hello');
    await shows('Hello there.');
    console.log('another model is chosen and asked');
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
