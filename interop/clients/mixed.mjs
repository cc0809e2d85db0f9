// An official TypeScript client in a session of 2025-11-25, for ../mixed.py: `node mixed.mjs ADDRESS CALLS`.
import { once } from 'node:events';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const IN_FLIGHT = 16;
const [address, calls] = [process.argv[2], Number(process.argv[3])];

const client = new Client({ name: 'mixed', version: '1' });
const transport = new StreamableHTTPClientTransport(new URL(address));
await client.connect(transport);
if (transport.protocolVersion !== '2025-11-25') throw new Error(`it speaks ${transport.protocolVersion}`);
let [next, right, wrong] = [0, 0, null];
async function work(until) {
    while (next < until) {
        const text = `typescript ${next++} é 漢字`;
        const { content } = await client.callTool({ name: 'echo', arguments: { text } });
        if (content.length === 1 && content[0].text === text) right++;
        else wrong ??= { text, content };
    }
}
for (const until of [calls >> 1, calls]) {
    console.log('ready');
    await once(process.stdin, 'data');
    await Promise.all(Array.from({ length: IN_FLIGHT }, () => work(until)));
}
console.log(JSON.stringify({ right, wrong }));
await client.close();
process.exit();
