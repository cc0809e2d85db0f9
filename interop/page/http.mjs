// Streamable HTTP as a page speaks it: `fetch`, and what CORS lets it read.
const JSON_OR_EVENTS = 'application/json, text/event-stream';
let id = 0;

/** The messages of a body: one in JSON, or the events of a stream. */
export async function* messages(response) {
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return yield await response.json();
    let rest = '';
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
        const events = (rest + text).split('\n\n');
        rest = events.pop();
        for (const event of events) {
            const data = event.split('\n').filter(line => line.startsWith('data:'));
            const message = data.map(line => line.slice(5).trim()).join('\n');
            if (message) yield JSON.parse(message);
        }
    }
}

/** Sends one message; `headers` are those of the revision. */
export function post(server, headers, message, options = {}) {
    return fetch(server, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: JSON_OR_EVENTS, ...headers },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
        ...options
    });
}

/** Sends a request: its answer, how it came, and what came before it, which `heard` may answer. */
export async function ask(server, headers, method, params, heard = () => {}) {
    const response = await post(server, headers, { id: ++id, method, params });
    const kind = response.headers.get('content-type');
    const before = [];
    for await (const message of messages(response)) {
        if (!message.method) return { response, kind, before, result: message.result, error: message.error };
        before.push(message);
        await heard(message);
    }
    throw new Error(`${method} was not answered`);
}
