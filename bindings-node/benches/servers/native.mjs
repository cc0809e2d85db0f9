// `echo` on this package alone: `node native.mjs ADDRESS`.
import { Server } from 'mcpbolt';

const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const server = new Server('native', '1').tool('echo', { description: 'Returns the text.', inputSchema }, ({ text }) => text);
await server.run(process.argv[2]);
