// Opens a page in Chromium and presses the first button of each page with a form. Prints the text of the page at
// which that ends, or, with `--until`, the address that starts so and is not opened.
//
//     node chromium.mjs PROGRAM [--until http://127.0.0.1:9/callback] 'http://127.0.0.1:9000/auth?…'
import { chromium } from 'playwright-core';

const PAGES = 10;
// A button may stand outside its form, and name it.
const BUTTONS = ':is(button, input[type=submit]):is(form *, [form])';
const [executablePath, ...words] = process.argv.slice(2);
const until = words.indexOf('--until') < 0 ? undefined : words[words.indexOf('--until') + 1];
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
try {
  const page = await browser.newPage();
  const ended = new Promise((resolve) => {
    if (until) page.on('request', (request) => request.url().startsWith(until) && resolve(request.url()));
  });
  const browsed = async () => {
    await page.goto(words.at(-1));
    for (let pages = 0; ; pages++) {
      // A form without a button is sent by a script of the page, as that with the code of a device: it is not the end.
      await page.waitForFunction((buttons) => !document.forms.length || document.querySelector(buttons), BUTTONS);
      const button = page.locator(BUTTONS).first();
      if (!(await button.count())) return (await page.innerText('body')).trim();
      if (pages === PAGES) throw new Error(`no end after ${PAGES} forms: ${page.url()}`);
      await Promise.all([page.waitForNavigation(), button.click()]);
    }
  };
  // An address that nobody listens at ends the visit with an error, but its request comes before.
  const visit = browsed();
  const elsewhere = (text) => {
    throw new Error(`the visit ended elsewhere: ${text}`);
  };
  console.log(await (until ? Promise.race([ended, visit.then(elsewhere)]) : visit));
} finally {
  await browser.close();
}
