// A server of the action dialect, which is a server of MCP as it stands, and a client of such servers.
//
// node actions.mjs                                      serves on stdin and stdout
// node actions.mjs http://127.0.0.1:8000/mcp            serves there
// node actions.mjs call http://127.0.0.1:8000/mcp       calls each action there, and prints what comes, a line each
import { ActionError, Client, Server } from 'mcpbolt';

const schema = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const number = { type: 'number' };
const string = { type: 'string' };

const folders = new Map([
    [
        '/usr/data',
        [
            { name: 'file1.txt', type: 'file', size: 1024 },
            { name: 'subdir', type: 'directory', size: null }
        ]
    ]
]);
const files = new Map([['/data/file1.txt', 'File 1 content']]);

/** What is at a path, or an error that says that nothing is. */
function find(map, path, what) {
    if (!map.has(path)) throw new ActionError('RESOURCE_NOT_FOUND', `${what} '${path}' not found.`, { details: { path } });
    return map.get(path);
}

const server = new Server('actions', '1.0.0', { actions: true })
    .tool(
        'calculator.add',
        {
            description: 'Adds two numbers.',
            inputSchema: schema({ a: number, b: number }),
            outputSchema: schema({ result: number }),
            action: {
                examples: [{ request: { params: { a: 5, b: 3 } }, response: { data: { result: 8 } } }],
                errors: ['VALIDATION_ERROR']
            }
        },
        ({ a, b }) => ({ result: a + b })
    )
    .tool(
        'file_system.list_directory',
        {
            description: 'Lists what is in a directory.',
            inputSchema: schema({ path: string, recursive: { type: 'boolean' } }, ['path']),
            outputSchema: schema({ files: { type: 'array' }, path: string }),
            action: { errors: ['RESOURCE_NOT_FOUND'] }
        },
        ({ path }) => ({ files: find(folders, path, 'Directory'), path })
    )
    .tool('file_system.read', { description: 'Reads a file.', inputSchema: schema({ path: string }) }, ({ path }) => ({
        content: find(files, path, 'File')
    }))
    .tool(
        'file_system.write',
        {
            description: 'Writes a file.',
            inputSchema: schema({ path: string, content: string }),
            action: { errors: ['PERMISSION_DENIED'] }
        },
        ({ path }) => {
            const helpUrl = 'https://example.com/access';
            throw new ActionError('PERMISSION_DENIED', `Write access denied to ${path}`, { helpUrl });
        }
    )
    .tool(
        'llm.generate',
        { description: 'Generates text, token by token.', inputSchema: schema({ prompt: string }) },
        (_, context) => {
            const tokens = ['Once', ' upon', ' a', ' time'];
            for (const token of tokens) context.partial({ token });
            return { full_text: tokens.join('') };
        }
    );

async function call(address) {
    const show = what => {
        const isError = what instanceof ActionError;
        console.log(JSON.stringify(isError ? { type: what.type, message: what.message, code: what.actionCode } : what));
    };
    const client = await Client.connect(address, { opening: 'actions' });
    show((await client.action('calculator.add', { a: 5, b: 3 })).data);
    await client.action('calculator.add', { a: 5, b: 'three' }).catch(show);
    const where = { path: '/usr/data', recursive: false };
    show((await client.action('file_system.list_directory', where, { context: 'conversation-123' })).data);
    show((await client.action('llm.generate', { prompt: 'Write a story' }, { onPartial: show })).data);
    const reading = ['file_system.read', { path: '/data/file1.txt' }];
    const writing = ['file_system.write', { path: '/data/file2.txt', content: 'New content' }];
    const batch = await client.actionBatch([reading, writing], { continueOnError: true });
    batch.results().forEach(show);
    await client.close();
}

async function serve(address) {
    const serving = await server.serve(address);
    console.error(`actions listens on ${serving.address}`);
    await serving.ended;
}

const [first, address] = process.argv.slice(2);
if (first === 'call') await call(address);
else if (first) await serve(first);
else await server.run();
