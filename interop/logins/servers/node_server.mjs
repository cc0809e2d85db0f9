// A resource server on the first TypeScript SDK, with express: one tool, `whoami`.
//
//     node node_server.mjs ISSUER URL
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express from 'express';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const [issuer, url] = [process.argv[2], new URL(process.argv[3])];
const keys = createRemoteJWKSet(new URL('/jwks', issuer));
const scopes = ['mcp:read'];
const verifier = {
  async verifyAccessToken(token) {
    const read = jwtVerify(token, keys, { issuer, audience: url.href });
    const { payload } = await read.catch((error) => {
      throw new InvalidTokenError(error.message);
    });
    const { client_id: clientId, scope, exp: expiresAt, sub } = payload;
    return { token, clientId, scopes: scope.split(' '), expiresAt, resource: url, extra: { sub } };
  },
};
const oauthMetadata = await (await fetch(new URL('/.well-known/oauth-authorization-server', issuer))).json();
const app = express();
app.use(express.json());
app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: url, scopesSupported: scopes }));
const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(url);
app.use(url.pathname, requireBearerAuth({ verifier, requiredScopes: scopes, resourceMetadataUrl }));
app.all(url.pathname, async (req, res) => {
  const server = new McpServer({ name: 'logins', version: '1' });
  server.registerTool('whoami', { description: 'Says who asks.' }, ({ authInfo }) => ({
    content: [{ type: 'text', text: `${authInfo.extra.sub}: ${authInfo.scopes.join(' ')}` }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  await transport.handleRequest(req, res, req.body);
});
app.listen(url.port, url.hostname);
