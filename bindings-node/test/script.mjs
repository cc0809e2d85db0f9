// The interactions of the equivalence test, each a request (or several at once), by name.
const call = (name, args, meta) => ({ method: 'tools/call', params: { name, ...(args && { arguments: args }), ...(meta && { _meta: meta }) } });
const read = uri => ({ method: 'resources/read', params: { uri } });
const get = (name, args) => ({ method: 'prompts/get', params: { name, ...(args && { arguments: args }) } });
const list = (what, params) => ({ method: `${what}/list`, ...(params && { params }) });
const complete = (ref, name, value, context) => ({ method: 'completion/complete', params: { ref, argument: { name, value }, ...(context && { context }) } });
const change = what => call('change', { what });

const LISTS = ['tools', 'resources', 'resources/templates', 'prompts'];
const lists = () => LISTS.map(what => list(what));

/** What arguments each tool is called with. */
const CALLS = {
    echo: [{ text: 'a' }, { text: '' }, { text: 'ü🦀\u2028' }, { text: 'x'.repeat(5000) }, { text: 1 }, {}, undefined, { text: 'a', more: 1 }],
    sync: [{ text: 'b' }, { text: null }],
    slow: [{ ms: 1 }, { ms: 'x' }],
    none: [undefined, {}, { any: 1 }],
    defaults: [undefined, {}, { n: 5 }, { n: 0 }, { n: 1.5 }, { on: true, kind: 'b' }, { kind: 'c' }, { n: '3' }],
    coerced: [{ n: '12' }, { n: 12 }, { n: 'x' }, { n: true }],
    trimmed: [{ text: '  ab ' }, { text: ' a ' }],
    refined: [{ a: 2 }, { a: 3 }],
    later: [{ a: 'abc' }, { a: 'a' }],
    nested: [
        { items: [] },
        { items: [{ id: 'b3c1f0a2-6c1e-4d3a-9f45-2a3f1e6f7a10', tags: { a: [1, 2.5, -3e9] } }] },
        { items: [{ id: 'no', tags: {} }] },
        { items: [1] },
        { items: [{}, {}, {}, {}] }
    ],
    choice: [{ of: { kind: 'x', x: 1 } }, { of: { kind: 'y', y: 'b' } }, { of: { kind: 'z' } }, { of: { kind: 'x', x: 'b' } }],
    many: [undefined],
    image: [undefined],
    badImage: [undefined],
    link: [undefined],
    annotated: [undefined],
    meta: [undefined],
    extra: [undefined],
    failed: [undefined],
    empty: [undefined],
    nothing: [undefined],
    contentless: [undefined],
    wrong: [undefined],
    surrogate: [undefined],
    unicode: [{ text: 'é' }],
    structured: [{ n: 1 }, { n: 1e300 }, { n: 'x' }],
    misfit: [undefined],
    unstructured: [undefined],
    excused: [undefined],
    free: [undefined],
    throws: [undefined],
    throwsAtOnce: [undefined],
    throwsText: [undefined],
    throwsProtocol: [undefined],
    throwsUrl: [undefined],
    titled: [{ q: 'q' }],
    context: [undefined, {}],
    client: [undefined],
    custom: [undefined],
    elicit: [undefined],
    sample: [undefined],
    roots: [undefined],
    subscribed: [undefined],
    fickle: [undefined],
    replaced: [undefined]
};

/** Twice each: the first request of a method is served otherwise than the later ones. */
export const SCRIPT = [
    ...lists(),
    call('echo', { text: 'first' }),
    ...lists(),
    ...Object.entries(CALLS).flatMap(([name, all]) => all.map(args => call(name, args))),
    call('context', undefined, { progressToken: 't', other: { a: 1 } }),
    call('echo', { text: 'x' }, {}),
    ...[undefined, 'token', 7].map(progressToken => call('progress', { n: 3 }, progressToken === undefined ? undefined : { progressToken })),
    call('missing', {}),
    call('__proto__', {}),
    call('echo', [1]),
    call(7, {}),
    { method: 'tools/call', params: {} },
    { method: 'tools/call' },
    ...['memo://a', 'memo://a', 'MEMO://a', 'memo://blob', 'memo://broken', 'memo://off', 'memo://none', 'user://7/name', 'user://7', 'no uri', ''].map(read),
    { method: 'resources/read', params: {} },
    ...[undefined, {}, { a: 'b' }].map(args => get('plain', args)),
    ...[{ who: 'Ada' }, { who: 'Ada', how: 'Hi' }, {}, undefined, { who: 1 }, { who: 'Ada', more: 'x' }].map(args => get('greet', args)),
    get('broken'),
    get('missing'),
    get(),
    complete({ type: 'ref/prompt', name: 'greet' }, 'who', 'A'),
    complete({ type: 'ref/prompt', name: 'greet' }, 'how', 'A'),
    complete({ type: 'ref/prompt', name: 'none' }, 'who', 'A'),
    complete({ type: 'ref/resource', uri: 'user://{id}/{part}' }, 'id', '4'),
    complete({ type: 'ref/resource', uri: 'memo://a' }, 'id', '4'),
    complete({ type: 'ref/resource', uri: 'none://' }, 'id', '4'),
    ...['info', 'error'].flatMap(level => [{ method: 'logging/setLevel', params: { level } }, call('log', { level: 'info' }), call('log', { level: 'critical' }), call('custom')]),
    { method: 'logging/setLevel', params: { level: 'loud' } },
    { method: 'resources/subscribe', params: { uri: 'memo://a' } },
    call('subscribed'),
    { method: 'resources/unsubscribe', params: { uri: 'memo://a' } },
    { method: 'com.example/add', params: { a: 1, b: 2 } },
    { method: 'com.example/add', params: { a: 1 } },
    { method: 'custom/none', params: {} },
    { method: 'ping' },
    { cancel: 'reason', method: 'tools/call', params: { name: 'wait', arguments: { name: 'one' } } },
    { cancel: true, method: 'tools/call', params: { name: 'wait', arguments: { name: 'two' } } },
    call('ended'),
    ...['add', 'disable'].flatMap(what => [change(what), ...lists()]),
    call('added', { a: '1' }),
    call('fickle'),
    ...['enable', 'rename', 'callback'].flatMap(what => [change(what), list('tools'), call('fickle'), call('renamed'), call('replaced')]),
    change('remove'),
    call('renamed'),
    ...['resource', 'prompt'].flatMap(what => [change(what), ...lists()]),
    read('memo://new'),
    get('new'),
    list('tools', {}),
    list('tools', { _meta: { a: 1 } }),
    list('tools', { cursor: 'x' })
];

export const nameOf = ({ method, params, cancel }) =>
    [method, params?.name ?? params?.uri ?? params?.ref?.name ?? '', JSON.stringify(params?.arguments ?? {}).slice(0, 60), cancel ? 'cancelled' : ''].join(' ').trim();
