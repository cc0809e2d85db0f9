// The releases of the SDKs that are known, and what happens under others.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { accelerate } from 'mcpbolt/sdk';
import { place } from './place.mjs';

const require = createRequire(import.meta.url);
const { known, listed, packageOf, RELEASES, unfit, unknown } = require('../dist/sdk/gate.js');
const SDK = '@modelcontextprotocol/sdk';

test('the README has the same table', () => {
    const text = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
    for (const name of Object.keys(RELEASES)) {
        const row = ['accelerated', 'carried'].map(what => listed(name, what)).map(said => (said === 'no release of it' ? '' : said));
        assert.ok(text.includes(`| \`${name}\` | ${row.join(' | ')} |`.replaceAll('  ', ' ')), row.join(' | '));
    }
});

test('a release is known by its minor version', () => {
    const treated = version => known({ name: SDK, version, folder: '' });
    assert.deepEqual(['1.32.2', '1.24.0', '1.20.1', '1.19.1', '1.99.0', '3.0.0', '1.32.0-beta.1', 'undefined'].map(treated), [
        'accelerated',
        'accelerated',
        'carried',
        ...Array(5).fill(undefined)
    ]);
    assert.equal(known({ name: 'other', version: '1.32.2', folder: '' }), undefined);
    assert.match(unfit({ name: SDK, version: '1.20.0', folder: '' }), /1\.20\.0 is not accelerated, only 1\.24, .* and 1\.32 are/);
    assert.match(unknown({ name: SDK, version: '9.0.0', folder: '' }), /^@modelcontextprotocol\/sdk 9\.0\.0 is not known to this mcpbolt, which knows 1\.20, /);
});

test('the package of a file is the next one with a name', () => {
    const file = require.resolve(`${SDK}/server/mcp.js`);
    const { name, version, folder } = packageOf(file);
    assert.deepEqual([name, version], [SDK, JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version]);
    assert.equal(packageOf('/nowhere/at/all.js'), undefined);
});

/** A copy of the SDK that says it is another release. */
function copied(version) {
    const folder = place('mcpbolt-release-');
    const from = packageOf(require.resolve(`${SDK}/server/mcp.js`)).folder;
    const to = join(folder, 'sdk');
    mkdirSync(to);
    for (const part of ['dist/esm', 'package.json']) cpSync(join(from, part), join(to, part), { recursive: true });
    const manifest = JSON.parse(readFileSync(join(to, 'package.json'), 'utf8'));
    writeFileSync(join(to, 'package.json'), JSON.stringify({ ...manifest, version }));
    return to;
}

test('accelerate leaves everything to a release that it does not know, and says so', async () => {
    const { McpServer } = await import(pathToFileURL(join(copied('1.99.0'), 'dist/esm/server/mcp.js')));
    const server = new McpServer({ name: 'new', version: '1' });
    server.registerTool('hello', {}, async () => ({ content: [] }));
    const { native, sdk } = accelerate(server).report();
    assert.deepEqual(native, []);
    assert.deepEqual(sdk.map(({ what }) => what), ['everything']);
    assert.match(sdk[0].why, /1\.99\.0 is not known/);
});
