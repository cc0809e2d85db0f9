// Programs of all kinds that serve on stdin and stdout, and a way to run them as they are and on the engine.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { place } from './place.mjs';
import { folder } from './wire.mjs';

export const COMMAND = fileURLToPath(new URL('bin/mcpbolt.mjs', folder));
export const REGISTER = fileURLToPath(new URL('register.mjs', folder));
export const here = place('mcpbolt-programs-');

const TOOL = {
    1: `server.registerTool('add', { inputSchema: { a: z.number(), b: z.number() } }, async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }));`,
    2: `server.registerTool('add', { inputSchema: z.object({ a: z.number(), b: z.number() }) }, async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }));`
};
const MODULES = {
    1: { McpServer: '@modelcontextprotocol/sdk/server/mcp.js', StdioServerTransport: '@modelcontextprotocol/sdk/server/stdio.js', Server: '@modelcontextprotocol/sdk/server/index.js' },
    2: { McpServer: '@modelcontextprotocol/server', StdioServerTransport: '@modelcontextprotocol/server/stdio' }
};

/** The beginning of a program: what it imports. */
export const imports = (generation, isModule = true) =>
    [...Object.entries(MODULES[generation]), ['z', 'zod']]
        .map(([name, from]) => (isModule ? `import ${name === 'z' ? '* as z' : `{ ${name} }`} from '${from}';` : `const ${name === 'z' ? 'z' : `{ ${name} }`} = require('${from}');`))
        .join('\n');

/** A server with one tool. */
export const made = (generation, of = 'McpServer') => `const server = new ${of}({ name: 'program', version: '1' });\n${TOOL[generation]}\n`;

/** The whole program. */
export const program = (generation, isModule = true, end = 'server.connect(new StdioServerTransport());') => `${imports(generation, isModule)}\n${made(generation)}${end}\n`;

const message = (id, method, params) => JSON.stringify({ jsonrpc: '2.0', ...(id && { id }), method, ...(params && { params }) });
export const HELLO = message(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } });
export const call = (id, args = { a: 1, b: 2 }, name = 'add') => message(id, 'tools/call', { name, arguments: args });
export const LINES = [HELLO, message(undefined, 'notifications/initialized'), call(2)];

export function write(name, text) {
    const file = join(here, name);
    writeFileSync(file, text);
    return file;
}

/**
 * Runs node with these arguments. Its stdin ends once it has answered the request `last`; if that is null, once its stderr matches `until`, or at once. Gives its exit, what
 * it answered by id, and what this package says on stderr. The lines of `then` are written once it has answered the request `after`.
 */
export async function ran(args, { lines = LINES, then, last = 2, env = {}, cwd = here, until } = {}) {
    const child = spawn(process.execPath, args, { cwd, env: { ...process.env, MCPBOLT_REPORT: '1', MCPBOLT: '', ...env } });
    let [out, err] = ['', ''];
    const say = lines => child.stdin.write(lines.map(line => `${line}\n`).join(''));
    const answers = () => Object.fromEntries(out.split('\n').filter(Boolean).map(line => JSON.parse(line)).map(one => [one.id, one]));
    child.stdin.on('error', () => {});
    child.stderr.setEncoding('utf8').on('data', text => {
        err += text;
        if (until?.test(err)) child.stdin.end();
    });
    child.stdout.setEncoding('utf8').on('data', text => {
        out += text;
        if (then && out.endsWith('\n') && answers()[then.after]) {
            say(then.lines);
            then = undefined;
        }
        if (!then && last !== null && out.endsWith('\n') && answers()[last]) child.stdin.end();
    });
    const killed = setTimeout(() => child.kill('SIGKILL'), 60_000);
    say(lines);
    if (last === null && until === undefined) child.stdin.end();
    const exit = await new Promise(resolve => child.on('close', (code, signal) => resolve(signal ?? code)));
    clearTimeout(killed);
    const told = err.split('\n').filter(line => line.startsWith('mcpbolt: ')).map(line => line.slice(9));
    return { exit, out, err, told, get answers() { return answers(); } };
}

/** Runs a program under `mcpbolt exec`. */
export const executed = (args, options) => ran([COMMAND, 'exec', ...args], options);
