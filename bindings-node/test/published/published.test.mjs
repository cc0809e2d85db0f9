// Servers that others have published, by themselves and under `mcpbolt exec`: every answer is compared.
//
// The stage `published-node` takes all of them; `MCPBOLT_PUBLISHED=NAME,NAME` takes these. Each is installed from npm into a
// folder of its own, once.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspect, isDeepStrictEqual } from 'node:util';
import { COMMAND } from '../programs.mjs';
import { nameOf, SERVERS } from './servers.mjs';
import { conversation, masked, shape, STATELESS, Talk } from './talk.mjs';
import { folder } from '../wire.mjs';

const { MCPBOLT_PUBLISHED: wish = 'all' } = process.env;
const CHOSEN = SERVERS.filter(server => wish === 'all' || wish.split(',').includes(nameOf(server)));
assert.ok(CHOSEN.length > 0, `no server is named ${wish}`);
const CACHE = fileURLToPath(new URL('../.cache/node/published/', folder));
const place = realpathSync(mkdtempSync(join(tmpdir(), 'mcpbolt-published-')));
after(() => rmSync(place, { recursive: true, force: true }));

/** The file of its program. */
function installed(server) {
    const name = nameOf(server);
    const at = join(CACHE, name.replace('/', '+'));
    const manifest = JSON.stringify({ name: 'published', private: true, dependencies: { [name]: server.package.slice(name.length + 1) } });
    const stamp = join(at, 'installed.json');
    if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== manifest) {
        rmSync(at, { recursive: true, force: true });
        mkdirSync(at, { recursive: true });
        writeFileSync(join(at, 'package.json'), manifest);
        // Browsers and the like, which such scripts load, are not needed.
        const { status, stderr } = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: at, encoding: 'utf8' });
        assert.equal(status, 0, stderr);
        writeFileSync(stamp, manifest);
    }
    const package_ = join(at, 'node_modules', name);
    const { bin } = JSON.parse(readFileSync(join(package_, 'package.json'), 'utf8'));
    const own = name.slice(name.indexOf('/') + 1);
    const programs = typeof bin === 'string' ? { [own]: bin } : bin;
    return join(package_, programs[server.program ?? (own in programs ? own : Object.keys(programs)[0])]);
}

/** Starts it in a folder that is as it was before each other run. */
function begun(server, how, revision) {
    const file = installed(server);
    // Runs of both kinds find the same paths, one after the other.
    const here = join(place, nameOf(server).replace('/', '+'));
    rmSync(here, { recursive: true, force: true });
    mkdirSync(here);
    server.prepare?.(here);
    const command = how === 'own' ? [process.execPath, file] : [process.execPath, COMMAND, 'exec', file];
    return new Talk([...command, ...(server.args ?? [])], here, { MCPBOLT_REPORT: '1', HOME: here, ...server.env }, revision);
}

for (const server of CHOSEN) {
    for (const revision of ['2025-11-25', STATELESS])
        test(`${nameOf(server)} says the same, ${revision}`, async () => {
            const said = {};
            let told;
            for (const how of ['own', 'exec']) {
                const talk = begun(server, how, revision);
                try {
                    said[how] = masked(await conversation(talk, server));
                } finally {
                    talk.child.kill('SIGKILL');
                }
                told = talk.stderr.split('\n').filter(line => line.startsWith('mcpbolt: '));
            }
            assert.ok(told[0]?.startsWith(`mcpbolt: ${server.how ?? 'stdio: the engine serves'}`), told.join('\n'));
            const varies = name => server.varies?.includes(name.split(' ')[0]);
            const alike = name => isDeepStrictEqual(said.own[name], said.exec[name]) || (varies(name) && isDeepStrictEqual(shape(said.own[name]), shape(said.exec[name])));
            const unlike = Object.keys(said.own).filter(name => !alike(name));
            assert.deepEqual(Object.keys(said.exec), Object.keys(said.own));
            const shown = unlike.slice(0, 5).map(name => [name, { own: said.own[name], exec: said.exec[name] }]);
            assert.equal(unlike.length, 0, inspect({ unlike, shown }, { depth: 9, maxStringLength: 600 }));
        });

    test(`${nameOf(server)} is ended by a signal as by itself`, async () => {
        const ends = {};
        for (const how of ['own', 'exec']) {
            const talk = begun(server, how, '2025-11-25');
            await talk.open();
            talk.child.kill('SIGTERM');
            ends[how] = await talk.exit;
        }
        assert.equal(ends.exec, ends.own);
    });
}

if (wish === 'all')
    test('npx installs what is not there, if it is asked for', async () => {
        const here = join(place, 'empty');
        mkdirSync(here);
        const { package: spec } = SERVERS.find(server => nameOf(server).endsWith('sequential-thinking'));
        const env = { MCPBOLT_REPORT: '1', npm_config_cache: join(place, 'npm'), npm_execpath: '' };
        const talk = new Talk([process.execPath, COMMAND, 'exec', '--yes', spec], here, env, '2025-11-25');
        assert.equal((await talk.open()).result.serverInfo.name, 'sequential-thinking-server');
        await talk.end();
        assert.match(talk.stderr, /^mcpbolt: stdio: the engine serves 'sequential-thinking-server'/m);
    });
