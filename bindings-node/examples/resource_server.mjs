// A resource server of OAuth: notes, which some clients may read and fewer may write. MCP_POLICY in the environment, a JSON
// object, takes the place of the policy below.
import { Server } from 'mcpbolt';

const policy = process.env.MCP_POLICY
    ? JSON.parse(process.env.MCP_POLICY)
    : {
          resource: { url: 'http://127.0.0.1:8000/mcp', issuers: ['https://login.example'], scopes: ['notes'] },
          scopes: { 'note.write': ['notes:write'] }
      };

const inputSchema = { type: 'object' };
const server = new Server('notes', '1.0.0', { policy })
    .tool('note.read', { description: 'Reads the note.', inputSchema }, (_, ctx) => `read by ${ctx.principal}`)
    .tool('note.write', { description: 'Writes the note.', inputSchema }, () => 'written')
    .tool('note.erase', { description: 'Erases the note.', inputSchema }, () => 'erased')
    .resource('note:///public/a', { description: 'A note.' }, () => 'a note')
    .resource('note:///secret/b', { description: 'A secret.' }, () => 'a secret')
    .prompt('summary', { description: 'Asks for a summary.' }, () => 'Summarize the notes.');

const [address = 'http://127.0.0.1:8000/mcp'] = process.argv.slice(2);
const serving = await server.serve(address);
console.error(`listening on ${serving.address}`);
await serving.ended;
