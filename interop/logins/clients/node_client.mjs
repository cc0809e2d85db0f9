// Logs in with the client of an official TypeScript SDK and calls `whoami` twice, after a pause of
// `MCPBOLT_PAUSE` seconds. Prints both answers.
//
//     node node_client.mjs v1|v2 [dpop] URL
import { spawnSync } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';

const [generation, ...rest] = process.argv.slice(2);
const url = new URL(rest.at(-1));
const [{ Client }, transports, { UnauthorizedError, DpopSession }] =
  generation === 'v1'
    ? await Promise.all([
        import('@modelcontextprotocol/sdk/client/index.js'),
        import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
        import('@modelcontextprotocol/sdk/client/auth.js'),
      ])
    : Array(3).fill(await import('@modelcontextprotocol/client'));

const CALLBACK = 'http://127.0.0.1:9/callback';
const browser = new URL('../browser.py', import.meta.url).pathname;
const session = rest.includes('dpop') ? await DpopSession.create() : undefined;
const kept = {};
let answer;
const authProvider = {
  redirectUrl: CALLBACK,
  clientMetadata: {
    client_name: `node ${generation}`,
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => (kept.tokens = tokens),
  saveCodeVerifier: (verifier) => (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  saveDiscoveryState: (state) => (kept.discovery = state),
  discoveryState: () => kept.discovery,
  ...(session && { dpop: () => session }),
  redirectToAuthorization(address) {
    const opened = spawnSync('python3', [browser, '--until', CALLBACK, String(address)], { encoding: 'utf8' });
    if (opened.status) throw new Error(opened.stderr);
    answer = new URL(opened.stdout.trim()).searchParams;
  },
};
const connect = async () => {
  const client = new Client({ name: 'logins', version: '1' });
  const transport = new transports.StreamableHTTPClientTransport(url, { authProvider });
  await client.connect(transport).catch(async (error) => {
    if (error instanceof UnauthorizedError && answer) {
      await transport.finishAuth(generation === 'v1' ? answer.get('code') : answer);
      answer = undefined;
      return;
    }
    throw error;
  });
  return client;
};
let client = await connect();
if (!client.getServerVersion()) client = await connect();
const ask = async () => console.log((await client.callTool({ name: 'whoami', arguments: {} })).content[0].text);
await ask();
await setTimeout(1000 * (process.env.MCPBOLT_PAUSE ?? 0));
await ask();
await client.close();
