// A real authorization server, the npm package `oidc-provider`, whose user agrees to everything.
//
//     node provider.mjs ['{"port": 0, "nonce": true, "lifetime": 60}']
//
// Prints a line of JSON with its issuer once it listens. `POST /control` with a JSON object changes the
// options while it runs; `{"rotate": true}` gives it a new signing key, beside the old ones. `GET /seen`
// tells how often each endpoint succeeded and which errors it gave, `GET /secrets` what nobody else may see.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import Provider from 'oidc-provider';
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js';

const options = {
  port: 0,
  // Whether DPoP proofs need a nonce.
  nonce: false,
  // Seconds until an access token ends.
  lifetime: 3600,
  // Resources whose path ends so get opaque tokens, for introspection; others get signed ones.
  opaque: '/opaque',
  ...JSON.parse(process.argv[2] ?? '{}'),
};
const SCOPES = ['mcp:read', 'mcp:write', 'mcp:admin'];
// Clients that were registered by hand.
const CLIENTS = [
  {
    client_id: 'resource-server',
    client_secret: 'secret-of-the-resource-server',
    grant_types: [],
    response_types: [],
    redirect_uris: [],
  },
  {
    client_id: 'machine',
    client_secret: 'secret-of-the-machine',
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
  },
  {
    client_id: 'known',
    client_secret: 'secret-of-the-known',
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
    redirect_uris: ['http://127.0.0.1/callback', 'http://localhost/callback'],
  },
  {
    client_id: 'device',
    token_endpoint_auth_method: 'none',
    application_type: 'native',
    grant_types: ['refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
    response_types: [],
    redirect_uris: [],
  },
];

// What is granted outlives a change of keys.
const adapter = createMemoryAdapter(15);
const keys = [];
const newKey = () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  keys.unshift({ ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'ES256' });
};
newKey();

const seen = {};
const count = (what) => (seen[what] = (seen[what] ?? 0) + 1);

// Everything that nobody but its owner may see.
const secrets = new Set(CLIENTS.map((client) => client.client_secret).filter(Boolean));
const remember = (members) => {
  const names = ['access_token', 'refresh_token', 'id_token', 'client_secret', 'device_code', 'code', 'code_verifier'];
  for (const name of names) if (members?.[name]) secrets.add(members[name]);
};

const serverOf = (resource) => ({
  scope: SCOPES.join(' '),
  audience: resource,
  accessTokenTTL: options.lifetime,
  accessTokenFormat: resource.endsWith(options.opaque) ? 'opaque' : 'jwt',
  jwt: { sign: { alg: 'ES256' } },
});

function make(issuer) {
  const provider = new Provider(issuer, {
    clients: CLIENTS.map((client) => ({ id_token_signed_response_alg: 'ES256', ...client })),
    clientDefaults: { id_token_signed_response_alg: 'ES256', grant_types: ['authorization_code', 'refresh_token'] },
    adapter,
    jwks: { keys },
    scopes: ['openid', 'offline_access', ...SCOPES],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_, interaction) => `/agree/${interaction.uid}` },
    cookies: { keys: ['of no value'] },
    ttl: { AccessToken: () => options.lifetime, ClientCredentials: () => options.lifetime, RefreshToken: 86400, Session: 86400, Grant: 86400, Interaction: 600, IdToken: 600, DeviceCode: 600 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => options.nonce },
      introspection: { enabled: true, allowedPolicy: (_, client) => client.clientId === 'resource-server' },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: (_, __, asked) => asked,
        getResourceServerInfo: (_, resource) => serverOf(resource),
        useGrantedResource: () => true,
      },
      revocation: { enabled: true },
      userinfo: { enabled: false },
    },
  });
  provider.use(async (ctx, next) => {
    if (ctx.path === '/control') {
      const asked = JSON.parse((await ctx.req.toArray()).join(''));
      if (asked.rotate) newKey();
      delete asked.rotate;
      Object.assign(options, asked);
      handle = make(issuer).callback();
      ctx.body = {};
    } else if (ctx.path === '/seen') {
      ctx.body = seen;
    } else if (ctx.path === '/secrets') {
      ctx.body = [...secrets];
    } else if (ctx.path.startsWith('/agree/')) {
      await agree(provider, ctx.req, ctx.res);
      ctx.respond = false;
    } else {
      await next();
      const location = ctx.response.get('location');
      for (const members of [ctx.body, ctx.oidc?.params, ctx.oidc?.body]) remember(members);
      if (location) remember(Object.fromEntries(new URL(location, issuer).searchParams));
      count(`${ctx.oidc?.route ?? ctx.path} ${ctx.body?.error ?? ctx.status}`);
    }
  });
  for (const event of ['server_error', 'authorization.error', 'grant.error', 'registration_create.error']) {
    provider.on(event, (_, error) => console.error(event, error.message, error.error_description ?? ''));
  }
  return provider;
}

// The user logs in, and grants what is asked for.
async function agree(provider, req, res) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(req, res);
  if (prompt.name === 'login') {
    return provider.interactionFinished(req, res, { login: { accountId: 'user' } });
  }
  const ids = { accountId: session.accountId, clientId: params.client_id };
  const grant = (grantId && (await provider.Grant.find(grantId))) || new provider.Grant(ids);
  const { missingOIDCScope, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  const consent = grantId ? {} : { grantId: await grant.save() };
  if (grantId) await grant.save();
  return provider.interactionFinished(req, res, { consent }, { mergeWithLastSubmission: true });
}

let handle;
const server = createServer((req, res) => handle(req, res));
// Clients that wait for a browser without looking at their connections find them open afterwards.
server.keepAliveTimeout = 120_000;
server.listen(options.port, '127.0.0.1');
await once(server, 'listening');
const issuer = `http://127.0.0.1:${server.address().port}`;
handle = make(issuer).callback();
console.log(JSON.stringify({ issuer }));
// It ends with whoever started it.
process.stdin.resume().on('end', () => process.exit());
