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
console.log('ready');
await once(process.stdin, 'data');

const begin = Date.now();
let [next, right, wrong] = [0, 0, null];
async function work() {
    while (next < calls) {
        const text = `typescript ${next++} é 漢字`;
        const { content } = await client.callTool({ name: 'echo', arguments: { text } });
        if (content.length === 1 && content[0].text === text) right++;
        else wrong ??= { text, content };
    }
}
await Promise.all(Array.from({ length: IN_FLIGHT }, work));
console.log(JSON.stringify({ begin, end: Date.now(), right, wrong }));
await client.close();
process.exit();
