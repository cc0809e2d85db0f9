// The answers of both floors: enough of MCP for a load generator, nothing checked. Tools: echo, resize.
const initialized = protocolVersion => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'floor', version: '1' } });
const schema = (...names) => ({ type: 'object', properties: Object.fromEntries(names.map(name => [name, {}])) });
const tools = [
    { name: 'echo', description: 'Returns the text.', inputSchema: schema('text') },
    { name: 'resize', description: 'Returns n bytes.', inputSchema: schema('text', 'n') }
];
const discovered = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, serverInfo: { name: 'floor', version: '1' } };

function called({ name, arguments: { text, n } }) {
    const answer = name === 'echo' ? text : text.slice(0, 16).padEnd(n, 'x');
    return { content: [{ type: 'text', text: answer }] };
}

/** The answer to a message, as JSON; `undefined` to a notification. */
export function answer({ id, method, params }) {
    if (id === undefined) return undefined;
    let result = {};
    if (method === 'tools/call') result = called(params);
    else if (method === 'tools/list') result = { tools };
    else if (method === 'initialize') result = initialized(params.protocolVersion);
    else if (method === 'server/discover') result = discovered;
    return JSON.stringify({ jsonrpc: '2.0', id, result });
}
