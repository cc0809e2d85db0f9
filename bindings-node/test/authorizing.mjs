// A server that wants access tokens, with an authorization server of its own at the same origin. Its user agrees to
// everything. What it is told and what it gives stands in `seen` and `secrets`.
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Server } from 'mcpbolt';

const answer = (response, status, body, headers = {}) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body === undefined ? '' : JSON.stringify(body));

/** `faults` replaces the answer of an endpoint: a status and a body by its path. `scheme` is that of the tokens. */
export async function authorizing({ lifetime = 3600, faults = {}, scheme = 'Bearer' } = {}) {
    const [seen, secrets, tokens, codes] = [[], [], new Map(), new Map()];
    const secret = what => (secrets.push(`${what}-${randomUUID()}`), secrets.at(-1));
    const serve = new Server('guarded', '1').tool('add', {}, () => 'added').tool('drop', {}, () => 'dropped').handler();
    let [origin, devices] = ['', 0];
    const granted = scope => {
        const access = secret('access');
        tokens.set(access, scope);
        return { access_token: access, token_type: scheme, expires_in: lifetime, refresh_token: secret('refresh'), scope };
    };
    const token = form => {
        switch (form.grant_type) {
            case 'authorization_code': {
                const { challenge, scope, redirectUri } = codes.get(form.code) ?? {};
                codes.delete(form.code);
                const isRight = challenge === createHash('sha256').update(form.code_verifier).digest('base64url');
                return isRight && redirectUri === form.redirect_uri && granted(scope);
            }
            case 'refresh_token': {
                const at = secrets.indexOf(form.refresh_token);
                return at >= 0 && granted(secrets.splice(at, 1) && 'add');
            }
            case 'urn:ietf:params:oauth:grant-type:device_code':
                return devices++ > 0 ? granted('add') : { error: 'authorization_pending' };
            default:
                return granted('add');
        }
    };
    const endpoints = {
        '/.well-known/oauth-protected-resource/mcp': () => [200, { resource: `${origin}/mcp`, authorization_servers: [origin] }],
        '/.well-known/oauth-authorization-server': () => [
            200,
            {
                issuer: origin,
                ...{ authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token`, registration_endpoint: `${origin}/register` },
                ...{ device_authorization_endpoint: `${origin}/device`, code_challenge_methods_supported: ['S256'], response_types_supported: ['code'] },
                authorization_response_iss_parameter_supported: true
            }
        ],
        '/register': form => [201, { ...form, client_id: 'registered' }],
        '/authorize': ({ state, code_challenge: challenge, scope, redirect_uri: redirectUri }) => {
            const code = secret('code');
            codes.set(code, { challenge, scope, redirectUri });
            return [302, undefined, { location: `${redirectUri}?${new URLSearchParams({ code, state, iss: origin })}` }];
        },
        '/device': () => [200, { device_code: secret('device'), user_code: 'ABCD', verification_uri: `${origin}/enter`, expires_in: 60, interval: 1 }],
        '/token': form => {
            const given = token(form) || { error: 'invalid_grant' };
            return [given.error ? 400 : 200, given];
        }
    };
    const http = createServer(async (request, response) => {
        const { pathname, searchParams } = new URL(request.url, 'http://x');
        if (pathname === '/mcp') {
            const bearer = request.headers.authorization?.replace(`${scheme} `, '');
            const wanted = request.headers['mcp-name'] ?? 'add';
            const challenge = error => ({ 'www-authenticate': `${scheme} resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp", scope="${wanted}"${error}` });
            if (!tokens.has(bearer)) return answer(response, 401, undefined, challenge(''));
            if (wanted === 'drop' && !tokens.get(bearer)?.includes('drop')) return answer(response, 403, undefined, challenge(', error="insufficient_scope"'));
            return serve(request, response);
        }
        let body = '';
        for await (const piece of request) body += piece;
        const isJson = request.headers['content-type']?.includes('json');
        const form = isJson ? JSON.parse(body) : Object.fromEntries([...searchParams, ...new URLSearchParams(body)]);
        seen.push({ path: pathname, form, headers: request.headers });
        const endpoint = endpoints[pathname];
        answer(response, ...(faults[pathname] ?? (endpoint ? endpoint(form) : [404, undefined])));
    }).listen(0, '127.0.0.1');
    await once(http, 'listening');
    origin = `http://127.0.0.1:${http.address().port}`;
    const paths = path => seen.filter(one => one.path === path).length;
    return { url: `${origin}/mcp`, origin, seen, secrets, paths, revoke: () => tokens.clear(), close: () => (http.close(), http.closeAllConnections()) };
}

/** A user who opens the page and agrees; returns the address with which the browser comes back. */
export const agree = async ({ url }) => (await fetch(url, { redirect: 'manual' })).headers.get('location');
