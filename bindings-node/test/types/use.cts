// The same package by `require`.
import mcpbolt = require('mcpbolt');

const server: mcpbolt.Server = new mcpbolt.Server('typed', '1.0');
server.tool('echo', {}, ({ text }: { text: string }, ctx) => (ctx.signal.aborted ? null : text));
void mcpbolt.Client.connect(server).then((client: mcpbolt.Client) => client.close());
