// The guides for those who come from another package. Each section has a program of that package and one of this: both compile
// under strict types, and answer, or print, as is said below them and beside their output.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import ts from 'typescript';
import { Client } from 'mcpbolt';
import { folder } from './wire.mjs';

const GUIDES = { sdk: 'COMING_FROM_SDK.md', fastmcp: 'COMING_FROM_FASTMCP.md' };
const COUNTS = { sdk: 7, fastmcp: 5 };
/** How a server of each package is served, by a program that only creates it. */
const SERVED = {
    sdk: `import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';\nawait server.connect(new StdioServerTransport());`,
    fastmcp: `await server.start({ transportType: 'stdio' });`,
    mcpbolt: `await server.run();`
};
const project = mkdtempSync(join(tmpdir(), 'mcpbolt-guides-'));
mkdirSync(join(project, 'node_modules/@types'), { recursive: true });
const link = (from, name) => symlinkSync(new URL(from, folder).pathname, join(project, 'node_modules', name));
link('.', 'mcpbolt');
for (const name of ['@modelcontextprotocol', '@types/node', 'fastmcp', 'zod']) link(`node_modules/${name}`, name);

const sections = Object.entries(GUIDES).flatMap(([guide, page]) => {
    const parts = readFileSync(new URL(page, folder), 'utf8').split(/^## /m).filter(text => text.includes('```ts'));
    assert.equal(parts.length, COUNTS[guide], page);
    return parts.map((text, index) => {
        const sources = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, source]) => source);
        assert.equal(sources.length, 2, text);
        const expected = [...text.matchAll(/^- `(.+?)` gives `(.+?)`/gm)].map(([, call, said]) => [call, said]);
        const programs = [guide, 'mcpbolt'].map((of, at) => [of, program(`${guide}-${index}-${of}`, sources[at], of, expected)]);
        return { guide, name: text.split('\n')[0], expected, programs: Object.fromEntries(programs) };
    });
});

function program(name, source, of, expected) {
    assert.equal(source.includes(`'mcpbolt'`), of === 'mcpbolt');
    const isServed = expected.length === 0 || /\.(connect|start|run)\(/.test(source);
    const text = isServed ? source : `${source}${SERVED[of]}\n`;
    writeFileSync(join(project, `${name}.mts`), text);
    const { outputText } = ts.transpileModule(text, { compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext } });
    writeFileSync(join(project, `${name}.mjs`), outputText);
    return { file: join(project, `${name}.mjs`), typed: join(project, `${name}.mts`), source };
}

/** A call such as `add({ a: 1 })` is of a tool or, failing that, of a prompt; anything else is a URI. */
async function answer(client, names, call) {
    const [, name, args] = /^(\w+)\((.*)\)$/.exec(call) ?? [];
    if (name === undefined) return (await client.readResource(call))[0].text;
    const given = new Function(`return ${args || '{}'}`)();
    if (!names.includes(name)) return (await client.getPrompt(name, given)).messages[0].content.text;
    return (await client.callTool(name, given)).content[0].text;
}

for (const { guide, name, expected, programs } of sections)
    for (const [of, { file, source }] of Object.entries(programs))
        test(`${GUIDES[guide]}, ${name}: the program of ${of}`, async () => {
            if (expected.length === 0) {
                const said = [...source.matchAll(/^console\.log\(.*\); \/\/ (.*)$/gm)].map(([, said]) => said);
                assert.ok(said.length > 0);
                const { stdout } = await promisify(execFile)(process.execPath, [file], { timeout: 30_000 });
                return assert.deepEqual(stdout.trimEnd().split('\n'), said);
            }
            const onElicitation = () => ({ action: 'accept', content: { guests: 2 } });
            const client = await Client.spawn(process.execPath, [file], { revision: '2025-11-25', onElicitation, stderr: 'ignore' });
            try {
                const names = client.capabilities.tools ? (await client.listTools()).map(({ name }) => name) : [];
                const said = [];
                for (const [call] of expected) said.push([call, await answer(client, names, call)]);
                assert.deepEqual(said, expected);
            } finally {
                await client.close();
            }
        });

test('the programs compile under strict types', () => {
    const files = sections.flatMap(({ programs }) => Object.values(programs).map(({ typed }) => typed));
    const options = {
        ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noEmit: true, skipLibCheck: true },
        ...{ target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
        ...{ types: ['node'], typeRoots: [join(project, 'node_modules/@types')] }
    };
    const program = ts.createProgram(files, options);
    const found = ts.getPreEmitDiagnostics(program).map(one => `${one.file?.fileName}: ${ts.flattenDiagnosticMessageText(one.messageText, '\n')}`);
    assert.deepEqual(found, []);
});
