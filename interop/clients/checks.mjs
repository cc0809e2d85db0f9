// What both TypeScript clients check; each brings its own way to connect and to name an error.
//
//     node CLIENT.mjs REVISION -- COMMAND [ARGUMENT...]
//
// Prints one JSON object a line for each check. run.py knows the checks and what they must say.
import { text as all } from 'node:stream/consumers';

const [revision, , command, ...args] = process.argv.slice(2);
const modern = revision >= '2026';
const say = (check, facts) => process.stdout.write(JSON.stringify({ check, ...facts }) + '\n');
const pause = ms => new Promise(resolve => setTimeout(resolve, ms));

/** What came of a request that ought to fail. */
async function outcome(request) {
    try {
        return { is_error: (await request).isError ?? false };
    } catch (error) {
        return { code: error.code ?? null, message: String(error.message) };
    }
}

/**
 * @param connect (revision, command, args) => {client, version(), request(method), callTool(params, options)}
 */
export async function run(connect) {
    const peer = await connect(revision, command, args);
    const { client } = peer;
    const call = async (name, args, options) => {
        const result = await peer.callTool({ name, arguments: args }, options);
        if (result.isError) throw new Error(JSON.stringify(result));
        return result.content[0].text;
    };
    const stats = async () => JSON.parse(await call('stats', {}));

    say('connect', { revision: peer.version(), name: client.getServerVersion()?.name });
    say('list', { tools: (await client.listTools()).tools.map(t => t.name) });
    for (const [of, text] of Object.entries(JSON.parse(await all(process.stdin)))) {
        say('echo', { of, same: (await call('echo', { text })) === text });
    }
    const resized = await call('resize', { text: '0123456789abcdefgh', n: 100_000 });
    say('resize', { same: resized === '0123456789abcdef' + 'x'.repeat(99_984) });

    say('unknown_tool', await outcome(peer.callTool({ name: 'no_such_tool', arguments: {} })));
    say('bad_arguments', await outcome(peer.callTool({ name: 'echo', arguments: { text: 7 } })));
    say('unknown_method', await outcome(peer.request('no/such_method')));
    if (!modern) say('ping', await outcome(client.ping()));

    const seen = [];
    const text = await call('progress', { n: 20 }, { onprogress: p => seen.push([p.progress, p.total]) });
    say('progress', { text, seen: [...seen] });

    const before = await stats();
    const abort = new AbortController();
    const slept = call('sleep', { ms: 60_000 }, { signal: abort.signal }).catch(() => {});
    await pause(300);
    const during = await stats();
    abort.abort();
    await slept;
    await pause(300);
    say('cancel', { before, during, after: await stats() });

    const answers = await Promise.all(Array.from({ length: 300 }, (_, i) => call('echo', { text: `call ${i}` })));
    say('concurrent', { wrong: answers.flatMap((answer, i) => (answer === `call ${i}` ? [] : [i])) });

    const began = performance.now();
    await client.close();
    say('close', { seconds: (performance.now() - began) / 1000 });
}
