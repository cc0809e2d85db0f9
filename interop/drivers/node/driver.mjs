// Our client in Node as a driver of the scripts in ../../scripts.py, which says what the steps and
// their outcomes are.
//
//     node driver.mjs REVISION -- COMMAND [ARGUMENT...]
import { text as all } from 'node:stream/consumers';
import { Client } from '../../../bindings-node/index.mjs';

const [revision, , command, ...args] = process.argv.slice(2);
const textOf = result => result.content[0]?.text ?? '';

async function call(client, { tool, arguments: args, progress, cancel_ms, timeout_ms }) {
    const seen = [];
    const options = {};
    if (progress) options.onProgress = ({ progress, total }) => seen.push([progress, total ?? null]);
    if (timeout_ms) options.timeout = timeout_ms;
    if (cancel_ms) options.signal = AbortSignal.timeout(cancel_ms);
    try {
        const result = await client.callTool(tool, args, options);
        return { text: textOf(result), is_error: result.isError ?? false, seen };
    } catch (error) {
        if (error.code === 'ERR_MCP_TIMEOUT') return { ended: 'timed out' };
        if (error.code === 'ERR_MCP_CANCELLED') return { ended: 'cancelled' };
        throw error;
    }
}

const steps = {
    info: async client => ({ revision: client.revision, name: client.server?.name }),
    tools: async client => ({ names: (await client.listTools()).map(tool => tool.name) }),
    resources: async client => ({ names: (await client.listResources()).map(resource => resource.uri) }),
    prompts: async client => ({ names: (await client.listPrompts()).map(prompt => prompt.name) }),
    read: async (client, { uri }) => ({ text: (await client.readResource(uri))[0].text }),
    prompt: async (client, step) => {
        const { messages } = await client.getPrompt(step.name, step.arguments);
        return { text: messages[0].content.text };
    },
    ping: async client => {
        await client.ping();
        return {};
    },
    many: async (client, { tool, argument, count }) => {
        const calls = Array.from({ length: count }, (_, i) => client.callTool(tool, { [argument]: `call ${i}` }));
        return { answers: (await Promise.all(calls)).map(textOf) };
    },
    call,
    close: async client => {
        await client.close();
        return { strays: client.strayCount };
    }
};

const script = JSON.parse(await all(process.stdin));
const client = await Client.spawn(command, args, { name: 'interop-node', version: '1', revision });
for (const step of script) {
    const told = await steps[step.do](client, step).catch(error => {
        if (error.code !== 'ERR_MCP_PEER') throw error;
        return { code: error.rpcCode };
    });
    process.stdout.write(JSON.stringify(told) + '\n');
}
