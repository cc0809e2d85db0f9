// Skills: folders of instructions for models, offered by servers and read by clients.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Server } from 'mcpbolt';
import { connect, failsWith, spawned } from './wire.mjs';

const SKILLS = 'io.modelcontextprotocol/skills';
const manifest = name => `---\nname: ${name}\ndescription: Fills in forms\nmetadata:\n  level: 2\n---\nRead on.\n`;
const PIXELS = Buffer.from([0xfb, 0xff]);

/** A folder with those files. */
function folder(files) {
    const root = mkdtempSync(join(tmpdir(), 'mcpbolt-skills-'));
    for (const [path, contents] of Object.entries(files)) {
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), contents);
    }
    return root;
}

const pdf = () =>
    folder({
        'SKILL.md': manifest('pdf'),
        'references/FORMS.md': 'Forms: ä.\n',
        'scripts/fill': '#!/bin/sh\n',
        'assets/a.png': PIXELS,
        'assets/raw': PIXELS,
        '.git/config': 'hidden'
    });

test('the skill of a folder is listed, loaded and read', async () => {
    const root = pdf();
    symlinkSync('/etc/hostname', join(root, 'references/link'));
    const client = await connect(new Server('office', '1', { pageSize: 1 }).skills(pathToFileURL(root)));
    assert.deepEqual(client.capabilities.extensions, { [SKILLS]: { directoryRead: true } });
    const [skill, ...others] = await client.skills.list();
    assert.deepEqual(others, []);
    assert.equal(skill.uri, 'skill://pdf/SKILL.md');
    assert.deepEqual(skill.frontmatter, { name: 'pdf', description: 'Fills in forms', metadata: { level: 2 } });
    const paths = ['SKILL.md', 'assets/a.png', 'assets/raw', 'references/FORMS.md', 'scripts/fill'];
    assert.deepEqual(skill.resources.map(({ uri }) => uri), paths.map(path => `skill://pdf/${path}`));
    const image = skill.resources[1];
    assert.deepEqual([image.size, image.digest], [2, `sha256:${createHash('sha256').update(PIXELS).digest('hex')}`]);
    assert.deepEqual(await client.skills.get(skill.uri), skill);
    assert.equal(await client.skills.load(skill), manifest('pdf'));
    assert.deepEqual(await client.skills.read(skill, image.uri), PIXELS);
    assert.equal(String(await client.skills.read(skill, 'skill://pdf/references/FORMS.md')), 'Forms: ä.\n');
    const within = await client.skills.folder('skill://pdf/assets');
    assert.deepEqual(within.map(({ name, mimeType }) => [name, mimeType]), [
        ['a.png', 'image/png'],
        ['raw', 'application/octet-stream']
    ]);
    const top = await client.skills.folder('skill://pdf');
    assert.deepEqual(top.map(({ mimeType }) => mimeType), ['text/markdown', ...Array(3).fill('inode/directory')]);
    const [listed] = await client.listResources();
    assert.deepEqual([listed.uri, listed.name], [skill.uri, 'pdf']);
    const [script] = await client.readResource('skill://pdf/scripts/fill');
    assert.deepEqual([script.mimeType, script.text], ['text/plain', '#!/bin/sh\n']);
});

test('skills lie where their folders lie, and come while the server runs', async () => {
    const root = folder({ 'a/SKILL.md': manifest('a'), 'team/b/SKILL.md': manifest('b'), 'team/b/x/SKILL.md': manifest('x') });
    const server = new Server('office', '1', { listChanges: true }).skills(root);
    const client = await connect(server);
    const uris = async () => (await client.skills.list()).map(({ uri }) => uri);
    assert.deepEqual(await uris(), ['skill://a/SKILL.md', 'skill://team/b/SKILL.md']);
    server.skills(pdf());
    assert.deepEqual(await uris(), ['skill://a/SKILL.md', 'skill://pdf/SKILL.md', 'skill://team/b/SKILL.md']);
});

test('what is no skill is not offered', () => {
    const server = new Server('office', '1').skills(pdf());
    const misuse = files => assert.throws(() => server.skills(folder(files)), failsWith('ERR_MCP_MISUSE'), JSON.stringify(files));
    misuse({});
    misuse({ 'README.md': 'No skill.' });
    misuse({ 'SKILL.md': 'no frontmatter' });
    misuse({ 'SKILL.md': '---\nname: pdf\n---\n' });
    misuse({ 'SKILL.md': manifest('PDF') });
    misuse({ 'SKILL.md': manifest('pdf') });
    misuse({ 'SKILL.md': manifest('big'), big: Buffer.alloc(17 << 20) });
});

/** A server whose files are not what it says of them. */
const LIAR = `
    import { createInterface } from 'node:readline';
    const uri = 'skill://pdf/SKILL.md';
    const frontmatter = { name: 'pdf', description: 'Fills in forms' };
    const skill = { uri, frontmatter, resources: [{ uri, digest: 'sha256:' + '0'.repeat(64), size: 4 }] };
    const results = {
        'server/discover': {
            supportedVersions: ['2026-07-28'],
            capabilities: { resources: {}, extensions: { '${SKILLS}': {} } },
            ttlMs: 0,
            cacheScope: 'private'
        },
        'skills/list': { skills: [skill], ttlMs: 0, cacheScope: 'private' },
        'resources/read': { contents: [{ uri, text: 'evil' }], ttlMs: 0, cacheScope: 'private' }
    };
    createInterface({ input: process.stdin }).on('line', line => {
        const { id, method } = JSON.parse(line);
        console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...results[method] } }));
    });
`;

test('a client uses no skill that is not what its entry says', async () => {
    const client = await spawned(LIAR, { revision: '2026-07-28' });
    const [skill] = await client.skills.list();
    const isLie = error => error.code === 'ERR_MCP_BAD_ANSWER' && /digest/.test(error.message);
    await assert.rejects(client.skills.load(skill), isLie);
    await assert.rejects(client.skills.folder('skill://pdf'), failsWith('ERR_MCP_UNSUPPORTED'));
    await assert.rejects(client.skills.read(skill, 'skill://pdf/other'), failsWith('ERR_MCP_MISUSE'));
    await assert.rejects(client.skills.load({ uri: 'x' }), failsWith('ERR_MCP_MISUSE'));
});

test('where there are no skills the client says so; their files are resources in every revision', async () => {
    const none = await connect(new Server('none', '1').tool('x', {}, () => ''));
    await assert.rejects(none.skills.list(), failsWith('ERR_MCP_UNSUPPORTED'));
    const server = new Server('office', '1').skills(pdf());
    for (const revision of ['2024-11-05', '2025-11-25']) {
        const client = await connect(server, { revision });
        await assert.rejects(client.skills.list(), failsWith('ERR_MCP_UNSUPPORTED'));
        const [contents] = await client.readResource('skill://pdf/SKILL.md');
        assert.deepEqual([contents.mimeType, contents.text], ['text/markdown', manifest('pdf')]);
    }
});

test('a list of skills that is kept is asked for again once resources have changed (R-CCH-07)', async () => {
    const server = new Server('office', '1', { listChanges: true, cacheLists: 60_000 }).skills(pdf());
    let asked = 0;
    const trace = (direction, message) => (asked += Number(direction === 'out' && message.includes('"skills/list"')));
    const client = await connect(server, { trace });
    const uris = async () => (await client.skills.list()).map(({ uri }) => uri);
    const listening = await client.listen({ resources: true });
    for (let i = 0; i < 2; i++) assert.deepEqual(await uris(), ['skill://pdf/SKILL.md']);
    assert.equal(asked, 1);
    server.skills(folder({ 'xls/SKILL.md': manifest('xls') }));
    assert.equal((await listening.next()).value.type, 'resourcesChanged');
    assert.deepEqual(await uris(), ['skill://pdf/SKILL.md', 'skill://xls/SKILL.md']);
    listening.close();
});
