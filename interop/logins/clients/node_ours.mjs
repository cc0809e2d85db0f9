// Logs in with our client in Node and calls `whoami` twice, after a pause of `MCPBOLT_PAUSE` seconds. Prints both answers.
//
//     node node_ours.mjs browser|paste|dpop|device|machine URL
import { execFile } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client, oauth } from '../../../bindings-node/index.mjs';

const [way, url] = process.argv.slice(2);
const BACK = 'http://127.0.0.1:9/callback';
const program = new URL('../browser.py', import.meta.url).pathname;
const browse = async (...words) => (await promisify(execFile)('python3', [program, ...words])).stdout.trim();
const browser = { onAuthorize: page => void browse(page.url) };
const ways = {
  browser,
  dpop: { ...browser, dpop: true },
  paste: { redirectUri: BACK, onAuthorize: page => browse('--until', BACK, page.url) },
  device: { grant: 'device', clientId: 'device', onDeviceCode: code => browse(code.verificationUriComplete) },
  machine: { grant: 'clientCredentials', clientId: 'machine', clientSecret: 'secret-of-the-machine' },
};
const client = await Client.connect(url, { auth: oauth({ clientName: 'node', ...ways[way] }) });
const ask = async () => console.log((await client.callTool('whoami')).content[0].text);
await ask();
await setTimeout(1000 * (process.env.MCPBOLT_PAUSE ?? 0));
await ask();
await client.close();
